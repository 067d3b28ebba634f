"""Fuzzers. Each has `run(seed, seconds)`, which prints counts and keeps what it finds; all but `races` have
`case(draw, folder)`, which draws one input and raises what is wrong with its outcome."""
