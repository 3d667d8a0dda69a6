// sigmoid: Out = 1 / (1 + exp(-X)). Source: Fluid's sigmoid.
//
// X@GRAD = Out@GRAD * Out * (1 - Out).
struct SigmoidFormula {
  static constexpr UnaryFacts kFacts = {.type = "sigmoid",
                                        .doc = "Out = 1 / (1 + exp(-X)).",
                                        .grad_doc = "X@GRAD = Out@GRAD * Out * (1 - Out).",
                                        .grad_reads = "Out",
                                        .grad_zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    // Far below 0 the exponential overflows to infinity, and the quotient is 0, as it should be.
    return V{1} / (V{1} + Exp(-x));
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return dout * (out * (V{1} - out));
  }
};
