#include "framework/training/training_settings.h"

#include "framework/base/error.h"
#include "framework/base/str_cat.h"

namespace skiff::training {
namespace {

constexpr const char* kConfigurationPrefix = "configuration.";
// Of the value of a setting that names files. Nothing compares it.
constexpr const char* kGivenPrefix = "given.";

// Adds the parts of a setting that names files that must not change.
void AddFixedParts(const std::string& name, const FileSetting& setting,
                   std::map<std::string, std::string>* configuration) {
  (*configuration)[name] = setting.form;
  for (const auto& [what, contents] : setting.contents) {
    // Behind the setting itself, which is then compared first.
    (*configuration)[StrCat(name, " (", what, ")")] = contents;
  }
}

// Returns whether an earlier version has written the state, which kept the names of files instead
// of their contents.
bool LacksContents(const TrainerState& state, const std::string& setting) {
  return state.contains(kConfigurationPrefix + setting) && !state.contains(kGivenPrefix + setting);
}

// `earlier`: what a state that lacks these settings was made with.
void CheckConfiguration(const std::map<std::string, std::string>& expected,
                        const std::map<std::string, std::string>& earlier, TrainerState state) {
  const std::string prefix = kConfigurationPrefix;
  for (const auto& [name, value] : earlier) state.emplace(prefix + name, value);
  for (const auto& [name, value] : expected) {
    const auto saved = state.find(prefix + name);
    SKIFF_ENFORCE(saved != state.end(), kInvalidArgument,
                  "the checkpoint is another program's: it was made without ", name,
                  ", but now that is ", value);
    SKIFF_ENFORCE(saved->second == value, kInvalidArgument, "the checkpoint was made with ", name,
                  " = ", saved->second, ", but now it is ", value,
                  ": resume with the old value, or begin anew in another output directory");
  }
  for (const auto& [name, value] : state) {
    const bool is_known =
        !name.starts_with(prefix) || expected.contains(name.substr(prefix.size()));
    SKIFF_ENFORCE(is_known, kInvalidArgument,
                  "the checkpoint is another program's: it was made with ",
                  name.substr(prefix.size()), " = ", value, ", which this program doesn't have");
  }
}

// Returns the settings that a state must have.
std::map<std::string, std::string> ExpectedSettings(const TrainerOptions& options,
                                                    const TrainerState& state) {
  std::map<std::string, std::string> expected = options.configuration;
  for (const auto& [name, setting] : options.file_settings) {
    if (LacksContents(state, name)) {
      expected[name] = setting.value;
    } else {
      AddFixedParts(name, setting, &expected);
    }
  }
  return expected;
}

}  // namespace

void AddPrecision(const ProgramPrecision& precision, TrainerOptions* options) {
  const std::map<std::string, std::string> earlier = ProgramPrecision().Settings();
  for (const auto& [name, value] : precision.Settings()) {
    const bool is_new = options->configuration.emplace(name, value).second;
    if (is_new) options->earlier_configuration.emplace(name, earlier.at(name));
  }
}

std::map<std::string, std::string> FixedSettings(const TrainerOptions& options) {
  std::map<std::string, std::string> settings = options.configuration;
  for (const auto& [name, setting] : options.file_settings) AddFixedParts(name, setting, &settings);
  return settings;
}

void AddSettings(const TrainerOptions& options, TrainerState* state) {
  for (const auto& [name, setting] : options.file_settings) {
    (*state)[kGivenPrefix + name] = setting.value;
  }
  for (const auto& [name, value] : FixedSettings(options)) {
    (*state)[kConfigurationPrefix + name] = value;
  }
}

void CheckSettings(const TrainerOptions& options, const TrainerState& state) {
  CheckConfiguration(ExpectedSettings(options, state), options.earlier_configuration, state);
}

void WarnOfUnknownContents(const TrainerOptions& options, const TrainerState& state,
                           std::ostream* out) {
  for (const auto& [name, setting] : options.file_settings) {
    if (!LacksContents(state, name)) continue;
    *out << "warning: an earlier version wrote the checkpoint, which doesn't say what " << name
         << " = " << setting.value
         << " held: the result is that of the unbroken training only if it holds the same now\n";
  }
}

}  // namespace skiff::training
