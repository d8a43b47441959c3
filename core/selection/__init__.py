"""Model selection from few labels: class fractions, method and λ."""
