// rmsprop for one element; see rmsprop.cc. Included in the namespace of each instruction set and of
// CUDA.
template <bool kCentered>
struct RmspropFormula {
  static constexpr size_t kStates = kCentered ? 3 : 2;
  enum Coefficient { kRate, kDecay, kRest, kMomentum, kEpsilon };  // kRest: 1 - kDecay

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& mean_square = states[0];
    V& moment = states[1];
    mean_square =
        math.MulAdd(math[kDecay], mean_square, math.Mul(math.Mul(math[kRest], grad), grad));
    V variance = mean_square;
    if constexpr (kCentered) {
      V& mean_grad = states[2];
      mean_grad = math.MulAdd(math[kDecay], mean_grad, math.Mul(math[kRest], grad));
      variance = math.Max(math.NegMulAdd(mean_grad, mean_grad, mean_square), math.Number(0));
    }
    const V scale = math.Sqrt(math.Add(variance, math[kEpsilon]));
    const V step = math.Div(math.Mul(math[kRate], grad), scale);
    moment = math.MulAdd(math[kMomentum], moment, step);
    param = math.Sub(param, moment);
  }
};
