#include "framework/builder/optimizer/named_optimizer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <variant>

#include "framework/base/error.h"
#include "framework/builder/optimizer/adadelta.h"
#include "framework/builder/optimizer/adagrad.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/adamax.h"
#include "framework/builder/optimizer/adamw.h"
#include "framework/builder/optimizer/decayed_adagrad.h"
#include "framework/builder/optimizer/ftrl.h"
#include "framework/builder/optimizer/lamb.h"
#include "framework/builder/optimizer/lars_momentum.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/rmsprop.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/regularizer.h"

namespace skiff::optimizer {
namespace {

using Make =
    std::function<std::unique_ptr<Optimizer>(const NamedOptimizer&, const std::source_location&)>;

struct Entry {
  std::vector<std::string> options;
  Make make;
};

template <class Options>
using Members = std::map<std::string, std::variant<float Options::*, bool Options::*>>;

template <class Options>
void SetOption(const Members<Options>& members, const std::string& name, double value,
               Options* options) {
  const auto& member = members.at(name);
  if (const auto* number = std::get_if<float Options::*>(&member)) {
    options->** number = static_cast<float>(value);
    return;
  }
  SKIFF_ENFORCE(value == 0 || value == 1, kInvalidArgument, "option ", name, " = ", value,
                ": expected 0 or 1");
  options->*std::get<bool Options::*>(member) = value == 1;
}

template <class Options>
void SetDecay(const NamedOptimizer& named, Options* options) {
  // An optimizer with a decay of its own (adamw, lamb, lars_momentum) decays apart from the
  // gradient; for all others, decay is an L2 term of the gradient.
  if constexpr (requires { options->weight_decay; }) {
    options->weight_decay = named.weight_decay;
    options->exclude_from_decay = named.exclude_from_decay;
  } else {
    SKIFF_ENFORCE(named.exclude_from_decay.empty(), kInvalidArgument, "optimizer \"", named.name,
                  "\" excludes no parameter from decay: expected adamw, lamb or lars_momentum");
    if (named.weight_decay > 0) options->regularization = L2Decay(named.weight_decay);
  }
}

template <class Kind, class Options>
Entry EntryOf(Members<Options> members) {
  Entry entry;
  for (const auto& [name, member] : members) entry.options.push_back(name);
  entry.make = [members = std::move(members)](const NamedOptimizer& named,
                                              const std::source_location& site) {
    Options options;
    options.learning_rate = named.learning_rate;
    options.clip = named.clip;
    options.multi_precision = named.multi_precision;
    SetDecay(named, &options);
    for (const auto& [name, value] : named.options) SetOption(members, name, value, &options);
    return std::make_unique<Kind>(options, site);
  };
  return entry;
}

// One line per optimizer: its name on a command line, its class, and the members of its option
// struct that can be set by name. New options need only an entry here.
const std::map<std::string, Entry>& Entries() {
  static const auto& entries = *new std::map<std::string, Entry>{
      {"adadelta", EntryOf<Adadelta, AdadeltaOptions>(
                       {{"epsilon", &AdadeltaOptions::epsilon}, {"rho", &AdadeltaOptions::rho}})},
      {"adagrad", EntryOf<Adagrad, AdagradOptions>(
                      {{"epsilon", &AdagradOptions::epsilon},
                       {"initial_accumulator", &AdagradOptions::initial_accumulator}})},
      {"adam", EntryOf<Adam, AdamOptions>({{"beta1", &AdamOptions::beta1},
                                           {"beta2", &AdamOptions::beta2},
                                           {"epsilon", &AdamOptions::epsilon},
                                           {"lazy_mode", &AdamOptions::lazy_mode}})},
      {"adamax", EntryOf<Adamax, AdamaxOptions>({{"beta1", &AdamaxOptions::beta1},
                                                 {"beta2", &AdamaxOptions::beta2},
                                                 {"epsilon", &AdamaxOptions::epsilon}})},
      {"adamw", EntryOf<AdamW, AdamWOptions>({{"beta1", &AdamWOptions::beta1},
                                              {"beta2", &AdamWOptions::beta2},
                                              {"epsilon", &AdamWOptions::epsilon},
                                              {"lazy_mode", &AdamWOptions::lazy_mode}})},
      {"decayed_adagrad", EntryOf<DecayedAdagrad, DecayedAdagradOptions>(
                              {{"decay", &DecayedAdagradOptions::decay},
                               {"epsilon", &DecayedAdagradOptions::epsilon}})},
      {"ftrl", EntryOf<Ftrl, FtrlOptions>({{"l1", &FtrlOptions::l1},
                                           {"l2", &FtrlOptions::l2},
                                           {"lr_power", &FtrlOptions::lr_power}})},
      {"lamb", EntryOf<Lamb, LambOptions>({{"always_adapt", &LambOptions::always_adapt},
                                           {"beta1", &LambOptions::beta1},
                                           {"beta2", &LambOptions::beta2},
                                           {"epsilon", &LambOptions::epsilon}})},
      {"lars_momentum", EntryOf<LarsMomentum, LarsMomentumOptions>(
                            {{"coefficient", &LarsMomentumOptions::coefficient},
                             {"epsilon", &LarsMomentumOptions::epsilon},
                             {"momentum", &LarsMomentumOptions::momentum}})},
      {"momentum",
       EntryOf<Momentum, MomentumOptions>({{"momentum", &MomentumOptions::momentum},
                                           {"use_nesterov", &MomentumOptions::use_nesterov}})},
      {"rmsprop", EntryOf<RmsProp, RmsPropOptions>({{"centered", &RmsPropOptions::centered},
                                                    {"epsilon", &RmsPropOptions::epsilon},
                                                    {"momentum", &RmsPropOptions::momentum},
                                                    {"rho", &RmsPropOptions::rho}})},
      {"sgd", EntryOf<Sgd, SgdOptions>({})},
  };
  return entries;
}

const Entry& Find(const std::string& name) {
  const auto found = Entries().find(name);
  SKIFF_ENFORCE(found != Entries().end(), kInvalidArgument, "optimizer \"", name,
                "\": expected one of ", Join(OptimizerNames(), ", "));
  return found->second;
}

}  // namespace

const std::vector<std::string>& OptimizerNames() {
  static const auto& names = *[] {
    auto* made = new std::vector<std::string>;
    for (const auto& [name, entry] : Entries()) made->push_back(name);
    return made;
  }();
  return names;
}

std::vector<std::string> OptimizerOptionNames(const std::string& optimizer) {
  return Find(optimizer).options;
}

std::unique_ptr<Optimizer> MakeOptimizer(const NamedOptimizer& named, std::source_location site) {
  const Entry& entry = Find(named.name);
  SKIFF_ENFORCE(named.weight_decay >= 0 && std::isfinite(named.weight_decay), kInvalidArgument,
                "weight_decay = ", named.weight_decay, ": expected a finite number, not negative");
  for (const auto& [option, value] : named.options) {
    SKIFF_ENFORCE(std::ranges::count(entry.options, option) > 0, kInvalidArgument, "optimizer \"",
                  named.name, "\" has no option \"", option, "\"",
                  entry.options.empty() ? "" : ": expected one of ", Join(entry.options, ", "));
  }
  return entry.make(named, site);
}

}  // namespace skiff::optimizer
