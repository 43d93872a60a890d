"""The way of a URL, in order and pure, in two halves: a coordinator that decides, and workers that ask.

``keep.Coordinator`` gives out orders and takes in reports; ``ask.Asker`` turns orders into requests and answers into
reports. Both are values in, values out: ``live`` drives them in processes of their own, tests in one, at made-up times.
"""
