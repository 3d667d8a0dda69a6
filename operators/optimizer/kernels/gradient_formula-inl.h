// The gradient of one element as formulas take it; see update_op.h. Included in the namespace of
// each instruction set and of CUDA.
struct GradientFormula {
  // Each step is rounded, as by the ops that a program would have in place of the form.
  template <class Math, class Form, class V>
  static constexpr V Formed(const Math& math, const Form& form, V grad, V param) {
    V formed = math.Mul(grad, math.Number(form.rescale));
    formed = math.Mul(formed, math.Number(form.scale));
    if (form.l2_decay != 0) formed = math.Add(formed, math.Mul(param, math.Number(form.l2_decay)));
    if (form.l1_decay != 0) {
      // l1_decay * sign(param): 0 for 0, NaN for NaN.
      const V zero = math.Number(0);
      const V below =
          math.WhereGreater(zero, param, math.Number(-form.l1_decay), math.Add(param, zero));
      formed = math.Add(formed, math.WhereGreater(param, zero, math.Number(form.l1_decay), below));
    }
    return formed;
  }
};
