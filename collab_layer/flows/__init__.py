"""The only room that orders awaits; each flow is load, pure stages, save."""
