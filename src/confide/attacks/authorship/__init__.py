"""Does a model give away who wrote something?"""
