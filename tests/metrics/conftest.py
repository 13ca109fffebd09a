"""What is not collected."""

collect_ignore = ["dlib_face_plugin.py"]  # it registers a metric where it is imported
