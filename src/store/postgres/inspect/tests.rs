//! Guesses on plain facts.
