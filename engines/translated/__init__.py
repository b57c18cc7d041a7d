"""Python translated to C by optional tools: the Value of `slots` by Cython and mypyc, and micrograd by RPython."""
