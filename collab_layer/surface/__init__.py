"""Words or JSON in, layer calls, words or JSON out."""
