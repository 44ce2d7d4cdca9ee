"""How each objective is answered: one file each, with its methods, its loop and its proof."""
