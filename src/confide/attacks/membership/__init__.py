"""Does a model give away who was in the training set?"""
