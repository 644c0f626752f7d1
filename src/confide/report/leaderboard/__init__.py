"""Who is worth most at equal epsilon: models that certify as much, by what they predict."""
