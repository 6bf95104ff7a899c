"""What runs inside the isolation, and the process that forks it.

Standard library only, since it may run under any interpreter. These modules are loaded without ``sandmle/__init__``
(see ``sandmle.sandbox.boot``), hold no secret, and are taken out of ``sys.modules`` before hostile code starts.
"""
