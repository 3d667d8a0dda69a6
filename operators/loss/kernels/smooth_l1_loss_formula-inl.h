// The formulas of smooth_l1_loss (element_formula.h), which smooth_l1_loss.cc states. Included in
// the namespace of each instruction set and of each place.

// The losses of elements, which the kernel sums over rows.
struct SmoothL1LossFormula {
  static constexpr std::array kInputs = {"X", "Y", "InsideWeight", "OutsideWeight"};
  static constexpr std::array kOutputs = {"Diff", "Out"};

  explicit SmoothL1LossFormula(const OpContext& context) : sigma(context.Attr<float>("sigma")) {}

  template <class V>
  constexpr std::array<V, 2> operator()(V x, V y, V inside, V outside) const {
    const V square = V(sigma) * V(sigma);
    const V bend = V{1} / square;
    const V d = inside * (x - y);
    const V size = Abs(d);
    const V loss = Where(size < bend, V(0.5f) * square * d * d, size - V(0.5f) * bend);
    return {d, outside * loss};
  }

  float sigma;
};

inline constexpr size_t kSmoothL1Dout = 3;

// The input without a name, kSmoothL1Dout, is Out@GRAD of the row.
struct SmoothL1LossGradFormula {
  static constexpr std::array kInputs = {"Diff", "InsideWeight", "OutsideWeight", ""};
  static constexpr std::array kOutputs = {"X@GRAD", "Y@GRAD"};

  explicit SmoothL1LossGradFormula(const OpContext& context)
      : sigma(context.Attr<float>("sigma")) {}

  template <class V>
  constexpr std::array<V, 2> operator()(V d, V inside, V outside, V dout) const {
    const V square = V(sigma) * V(sigma);
    const V sign = Where(d < V{0}, V{-1}, V{1});
    const V slope = dout * Where(Abs(d) < V{1} / square, square * d, sign) * inside * outside;
    return {slope, -slope};
  }

  float sigma;
};
