"""The Value of `slots`, compiled as it is by tools that turn Python into C: Cython and mypyc. Both are optional."""
