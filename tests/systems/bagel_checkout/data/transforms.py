"""Stands for a module of BAGEL: images in sizes that the model takes."""


class ImageTransform:
    def __init__(self, max_image_size, min_image_size, image_stride):
        self.sides = max_image_size, min_image_size, image_stride

    def resize_transform(self, image):
        stride = self.sides[2]
        return image.resize([max(stride, side // stride * stride) for side in image.size])
