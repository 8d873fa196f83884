"""State: position enters what is remembered, `S_i = f_i S_{i-1} + k_i v_i^T`. No softmax; older tokens fade or are replaced."""
