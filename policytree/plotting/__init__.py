"""Pictures of trees, of their partitions and of values, drawn with matplotlib; what they show draws itself."""
