#include "tests/harness/case_coverage.h"

#include <algorithm>
#include <set>

#include "framework/base/error.h"
#include "tests/harness/case_op.h"
#include "tests/harness/gradient_check.h"

namespace skiff::harness {
namespace {

// Collects from the cases which ops and gradients they test, then goes through the registry and
// compares.
class CoverageCheck {
 public:
  CoverageCheck(const OpRegistry& registry, const CaseList& cases,
                const std::map<std::string, std::string>& without_case)
      : registry_(registry), without_case_(without_case) {
    for (const OpCase& op_case : cases) CollectTested(op_case);
  }

  std::vector<std::string> Problems() {
    for (const std::string& type : registry_.Types()) {
      const OpDef& def = registry_.Get(type);
      CheckDocs(def);
      CheckFacts(def);
      CheckKernels(def);
      CheckCases(def);
      CheckGradient(def);
    }
    CheckExcuses();
    return problems_;
  }

 private:
  void Expect(bool condition, std::string_view type, const std::string& problem) {
    if (!condition) problems_.push_back(StrCat(type, ": ", problem));
  }

  void CollectTested(const OpCase& op_case) {
    Expect(names_.insert(CaseName(op_case)).second, op_case.type,
           StrCat("has two cases named ", op_case.name));
    if (op_case.benchmark_only) return;
    if (registry_.Find(op_case.type) == nullptr) {
      Expect(false, op_case.type, StrCat("case ", op_case.name, " is of no known op"));
      return;
    }
    tested_.insert(op_case.type);
    if (!op_case.unchecked_gradient.empty()) unchecked_gradient_.insert(op_case.type);
    if (op_case.gradients.empty()) return;
    gradient_checked_.insert(op_case.type);
    try {
      const std::vector<std::string> wanted = GradientVariables(op_case);
      const auto wants = [&](const std::string& name) {
        return std::count(wanted.begin(), wanted.end(), name) > 0;
      };
      const Op forward = MakeOp(op_case);
      for (const Op& op : GradientOps(registry_, op_case, forward, wants)) {
        tested_.insert(op.type);
        Expect(registry_.Find(op.type) != nullptr, op_case.type,
               StrCat("its gradient op ", op.type, " is not registered"));
      }
    } catch (const Error& error) {
      Expect(false, op_case.type, StrCat("case ", op_case.name, ": ", error.what()));
    }
  }

  void CheckDocs(const OpDef& def) {
    Expect(!def.doc.empty(), def.type, "has no documentation");
    std::set<std::string> names;
    for (const auto* slots : {&def.inputs, &def.outputs}) {
      names.clear();
      for (const SlotDef& slot : *slots) {
        Expect(!slot.doc.empty(), def.type, StrCat("slot ", slot.name, " has no documentation"));
        Expect(names.insert(slot.name).second, def.type, StrCat("has slot ", slot.name, " twice"));
      }
    }
    names.clear();
    for (const AttrDef& attr : def.attrs) {
      Expect(!attr.doc.empty(), def.type, StrCat("attribute ", attr.name, " has no documentation"));
      Expect(!attr.accepts || !attr.expected.empty(), def.type,
             StrCat("attribute ", attr.name, " refuses values and doesn't say what it expects"));
      Expect(names.insert(attr.name).second, def.type,
             StrCat("has attribute ", attr.name, " twice"));
      CheckDefault(def, attr);
    }
  }

  void CheckDefault(const OpDef& def, const AttrDef& attr) {
    if (!attr.default_value) return;
    Expect(TypeOf(*attr.default_value) == attr.type, def.type,
           StrCat("attribute ", attr.name, " is declared as ", AttrTypeName(attr.type),
                  ", its default is of type ", AttrTypeName(TypeOf(*attr.default_value))));
    if (!attr.accepts) return;
    Expect(attr.accepts(*attr.default_value), def.type,
           StrCat("attribute ", attr.name, " refuses its own default"));
  }

  void CheckFacts(const OpDef& def) {
    Expect((def.grad != nullptr) != !def.no_gradient_reason.empty(), def.type,
           "needs a gradient rule or a reason why there is none");
    for (const auto& [input, output] : def.in_place) {
      Expect(def.FindInput(input) != nullptr && def.FindOutput(output) != nullptr, def.type,
             StrCat("in_place names ", input, " -> ", output, ", which are no slots"));
    }
    for (const StaticText slot : def.layout_slots) {
      Expect(def.FindInput(slot) != nullptr || def.FindOutput(slot) != nullptr, def.type,
             StrCat("layout_slots names ", slot, ", which is no slot"));
    }
    Expect((def.layout_rule == LayoutRule::kPlain) == def.layout_slots.empty(), def.type,
           "layout_slots must be given exactly where the layout rule is not plain");
    const StaticText slot = def.kernel_dtype_slot;
    Expect(slot.empty() || def.FindInput(slot) != nullptr || def.FindOutput(slot) != nullptr,
           def.type, StrCat("kernel_dtype_slot ", slot, " is no slot"));
    for (const SlotDef& output : def.outputs) {
      Expect(!output.shape_only && !output.checks_data, def.type,
             StrCat("output ", output.name, " is shape_only or checks_data"));
    }
    bool checks_data = false;
    for (const SlotDef& input : def.inputs) {
      checks_data = checks_data || input.checks_data;
      Expect(!input.shape_only || !input.checks_data, def.type,
             StrCat("input ", input.name, " is both shape_only and checks_data"));
    }
    const StaticText other = def.data_checked_by;
    Expect(
        other.empty() || (checks_data && registry_.Find(other) != nullptr), def.type,
        StrCat("data_checked_by = ", other, ": expected an op, and an input that is checks_data"));
  }

  void CheckKernels(const OpDef& def) {
    // The executor runs blocks itself.
    if (def.block != nullptr) return;
    const std::vector<KernelDef>& kernels = registry_.Kernels(def.type);
    const bool on_cpu = std::any_of(kernels.begin(), kernels.end(), [](const KernelDef& kernel) {
      return kernel.place == PlaceKind::kCpu && kernel.prepare != nullptr;
    });
    Expect(on_cpu, def.type, "has no CPU kernel");
  }

  void CheckCases(const OpDef& def) {
    const bool excused = without_case_.count(def.type) > 0;
    const bool tested = tested_.count(def.type) > 0;
    Expect(tested || excused, def.type,
           StrCat("has no case: expected tests/operators/<family>/", def.type,
                  "_cases.cc to add one, or the checked gradient of another op's case to run it"));
    Expect(!tested || !excused, def.type, "is listed as without a case, but has one");
  }

  // Ops without a case are CheckCases's concern: there is no case that could list their gradients.
  void CheckGradient(const OpDef& def) {
    const bool excused = unchecked_gradient_.contains(def.type);
    const bool checked = gradient_checked_.count(def.type) > 0;
    const bool needed = def.grad != nullptr && tested_.count(def.type) > 0;
    Expect(!needed || checked || excused, def.type,
           "has a gradient rule, but no case that lists an input in `gradients`");
    Expect(
        !excused || (needed && !checked), def.type,
        "has a case that says why its gradient rule is not checked, but it is, or there is none");
  }

  void CheckExcuses() {
    for (const auto& [type, reason] : without_case_) {
      Expect(registry_.Find(type) != nullptr, type, "is listed as without a case, but no op");
      Expect(!reason.empty(), type, "is listed as without a case, but without a reason");
    }
  }

  const OpRegistry& registry_;
  const std::map<std::string, std::string>& without_case_;
  std::set<std::string> names_;  // of all cases
  std::set<std::string> tested_;
  std::set<std::string> gradient_checked_;    // ops with a case that lists gradients
  std::set<std::string> unchecked_gradient_;  // ops with a case that says why none does
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> CoverageProblems(const OpRegistry& registry, const CaseList& cases,
                                          const std::map<std::string, std::string>& without_case) {
  return CoverageCheck(registry, cases, without_case).Problems();
}

}  // namespace skiff::harness
