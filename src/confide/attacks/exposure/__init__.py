"""Does a model rank a planted secret first?"""
