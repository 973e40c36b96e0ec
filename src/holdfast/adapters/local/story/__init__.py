"""The story of a store: messages, annotations, activities."""
