"""Two stand-ins for NVIDIA's library, fed from the same profiles.

``library`` replaces it inside a process, at the ctypes boundary: pynvml itself runs unchanged above. ``compiled`` builds a real
libnvidia-ml.so.1 for tests that run the agent as processes of its own. A profile holds what a card of its kind reports under load;
what a card does not have is not in its profile, and the call answers "not supported".
"""
