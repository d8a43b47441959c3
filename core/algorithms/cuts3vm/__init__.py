"""CutS3VM (Zhao, Wang and Zhang 2008): a semi-supervised SVM trained by cutting planes."""
