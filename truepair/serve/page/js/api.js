// Requests to the service. Errors are Error objects whose message is a sentence for people.

async function answer(response) {
  if (response.ok) return response.json();
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // Not from the service: something between it and the browser answered.
  }
  const error = new Error(problem.detail || `The service answered ${response.status}.`);
  error.status = response.status;
  error.type = problem.type;
  throw error;
}

async function asked(address, options) {
  try {
    return await answer(await fetch(address, options));
  } catch (error) {
    if (error instanceof TypeError) throw new Error("The service does not answer. Is truepair serve still running?");
    throw error;
  }
}

/** `values` as a query string; lists are repeated, empty and missing ones left out. */
export function query(values) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "") found.append(name, each);
    }
  }
  const text = found.toString();
  return text ? `?${text}` : "";
}

export function get(path, values = {}, signal = undefined) {
  return asked(path + query(values), { signal });
}

export function post(path, body, signal = undefined) {
  const headers = { "Content-Type": "application/json" };
  return asked(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

/** Send a form (FormData), such as one with a picture; `values` go into the address. */
export function send(path, form, values = {}, signal = undefined) {
  return asked(path + query(values), { method: "POST", body: form, signal });
}
