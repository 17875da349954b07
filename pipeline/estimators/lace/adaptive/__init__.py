"""The adaptive rule of LACE: which correction serves, chosen across folds from the labels themselves."""
