"""Does text of one domain come out in another?"""
