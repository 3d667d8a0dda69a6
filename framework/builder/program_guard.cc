#include "framework/builder/program_guard.h"

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/builder/build_state.h"

namespace skiff {

using internal::TheBuildState;

Program& DefaultMainProgram() { return *TheBuildState().main; }
Program& DefaultStartupProgram() { return *TheBuildState().startup; }

ProgramGuard::ProgramGuard(Program* main, Program* startup)
    : previous_main_(TheBuildState().main),
      previous_startup_(TheBuildState().startup),
      previous_block_(TheBuildState().block) {
  SKIFF_ENFORCE(main != nullptr && startup != nullptr && main != startup, kInvalidArgument,
                "ProgramGuard: expected two programs, one for the model and one for its startup");
  TheBuildState().main = main;
  TheBuildState().startup = startup;
  TheBuildState().block = nullptr;
}

ProgramGuard::~ProgramGuard() {
  TheBuildState().main = previous_main_;
  TheBuildState().startup = previous_startup_;
  TheBuildState().block = previous_block_;
}

NameScope::NameScope(const std::string& name) : previous_(TheBuildState().name_scope) {
  SKIFF_ENFORCE(!name.empty() && name.find('/') == std::string::npos, kInvalidArgument,
                "NameScope: \"", name, "\" is no name: it must not be empty nor have a slash");
  TheBuildState().name_scope = StrCat(previous_.empty() ? "/" : previous_, name, "/");
}

NameScope::~NameScope() { TheBuildState().name_scope = previous_; }

}  // namespace skiff
