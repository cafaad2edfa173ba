"""Programs as autograd's users write them: each imports ``autograd``, and has ``run(steps, tick)``.

``tick`` is told a number after each step. Written for this benchmark; ``bench.moving_in`` runs them.
"""
