// swish: Out = X / (1 + exp(-X)). Source: Fluid's swish, after Ramachandran, Zoph, Le: Searching
// for Activation Functions (2017).
//
// X@GRAD = Out@GRAD * s * (1 + X * (1 - s)) with s = 1 / (1 + exp(-X)).
struct SwishFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "swish",
      .doc = "Out = X / (1 + exp(-X)).",
      .grad_doc = "X@GRAD = Out@GRAD * s * (1 + X * (1 - s)) with s = 1 / (1 + exp(-X)).",
      .grad_reads = "X",
      .zero_preserving = true,
      .grad_zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    const V limited = AboveMinusExpReach(x);
    return limited / (V{1} + QuickExp(-limited));
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    const V limited = BelowExpReach(AboveMinusExpReach(x));
    const V sigmoid = V{1} / (V{1} + QuickExp(-limited));
    return dout * sigmoid * MulAdd(limited, V{1} - sigmoid, V{1});
  }
};
