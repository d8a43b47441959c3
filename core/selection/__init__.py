"""What a person with a few labels cannot say and a training must know: class fractions, method, λ, and how sure a score is."""
