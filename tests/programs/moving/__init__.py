"""Programs as autograd's users write them: each imports ``autograd``, and has ``run(steps, tick)``.

``tick`` is told a number after each step. ``tests/oracles/test_moving_in.py`` compares them with autograd, and
``bench.moving_in`` times them.
"""
