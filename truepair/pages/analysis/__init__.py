"""What a trained model has learned, seen from outside: what its parts hold and how they relate."""
