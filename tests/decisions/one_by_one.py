"""Decides pairs one after the other and says so on standard output once each is kept; killed in the midst of it.

python one_by_one.py DATABASE COUNT [LARGEST_FILE]
"""

import resource
import sys

from truepair.decisions import Decision, DecisionStore
from truepair.errors import InputError

if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
store = DecisionStore.open(sys.argv[1])
for number in range(int(sys.argv[2])):
    try:
        store.record(Decision(pair_id=f"pair {number}", verdict="match", person="Ada", chosen_by="worst"))
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(3)
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()
