"""Operations: each one forward and its gradient rules, side by side."""
