"""Stages that can ask a model: each an `ask` and a `read`, both pure.

`ask` makes a `Question` of values; the flow puts it to a model; `read` makes values of the
reply, and counts what it had to put right. The rules of the same stage stand in where there
is no reply.
"""
