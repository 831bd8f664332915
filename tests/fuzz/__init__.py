"""Feed forged and damaged files to isokern: each must end in a result or in a clean error, within limits.

``make fuzz MINUTES=5`` runs it. It lives among the tests because it forges files with their helpers, because the corpus
of inputs that once failed is replayed by ``tests/test_fuzz.py``, and because it is not part of the package.
"""
