// log: Out = ln X; -inf at 0, NaN below. Source: Fluid's log.
//
// X@GRAD = Out@GRAD / X.
struct LogFormula {
  static constexpr UnaryFacts kFacts = {.type = "log",
                                        .doc = "Out = ln X.",
                                        .grad_doc = "X@GRAD = Out@GRAD / X.",
                                        .grad_reads = "X",
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    return Log(x);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    return dout / x;
  }
};
