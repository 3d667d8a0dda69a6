#include "framework/command_line/command_line.h"

#include <gflags/gflags.h>
#include <locale.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "framework/base/error.h"

namespace skiff {
namespace {

bool Takes(const Command& command, const std::string& flag) {
  return command.flags.empty() || std::ranges::find(command.flags, flag) != command.flags.end();
}

bool FindFlag(const Command& command, const std::string& name, gflags::CommandLineFlagInfo* info) {
  return Takes(command, name) && gflags::GetCommandLineFlagInfo(name.c_str(), info);
}

void SetFlag(const Command& command, const std::string& name, const std::string& value) {
  gflags::CommandLineFlagInfo info;
  SKIFF_ENFORCE(FindFlag(command, name, &info), kInvalidArgument, "there is no flag --", name);
  SKIFF_ENFORCE(!gflags::SetCommandLineOption(name.c_str(), value.c_str()).empty(),
                kInvalidArgument, "--", name, "=", value, ": expected a value of type ", info.type);
}

// Sets the flag that arguments[i] names and returns how many arguments that took.
size_t ParseFlag(const Command& command, const std::vector<std::string>& arguments, size_t i) {
  // gflags' own parser exits the process on errors, and takes flags of every linked library. So the
  // arguments are parsed here, and gflags only keeps the values.
  std::string name = arguments[i].substr(arguments[i].starts_with("--") ? 2 : 1);
  const size_t equals = name.find('=');
  if (equals != std::string::npos) {
    SetFlag(command, name.substr(0, equals), name.substr(equals + 1));
    return 1;
  }
  gflags::CommandLineFlagInfo info;
  if (!FindFlag(command, name, &info) && name.starts_with("no") &&
      FindFlag(command, name.substr(2), &info) && info.type == "bool") {
    SetFlag(command, name.substr(2), "false");
    return 1;
  }
  SKIFF_ENFORCE(FindFlag(command, name, &info), kInvalidArgument, "there is no flag --", name,
                "; --help lists them");
  if (info.type == "bool") {
    SetFlag(command, name, "true");
    return 1;
  }
  SKIFF_ENFORCE(i + 1 < arguments.size(), kInvalidArgument, "--", name, " needs a value");
  SetFlag(command, name, arguments[i + 1]);
  return 2;
}

// gflags knows the source file of each flag. Flags of linked libraries, such as glog's, would fill
// the help.
bool IsOurs(const gflags::CommandLineFlagInfo& flag) {
  for (const char* folder : {"models/", "tools/", "tests/"}) {
    if (flag.filename.find(folder) != std::string::npos) return true;
  }
  return false;
}

// Breaks a text into lines of at most `width` columns, each after six spaces.
std::string Indented(std::string_view text, size_t width) {
  std::string result;
  size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column == 0 || column + 1 + word.size() > width) {
      result += StrCat(column == 0 ? "" : "\n", "      ", word);
      column = word.size();
    } else {
      result += StrCat(" ", word);
      column += 1 + word.size();
    }
  }
  return result + "\n";
}

void SetFlagDefaults(const std::vector<std::pair<std::string, std::string>>& defaults) {
  for (const auto& [name, value] : defaults) {
    const std::string result = gflags::SetCommandLineOptionWithMode(name.c_str(), value.c_str(),
                                                                    gflags::SET_FLAGS_DEFAULT);
    SKIFF_ENFORCE(!result.empty(), kInvalidArgument, "--", name, " can't have the default ", value);
  }
}

bool IsHelp(const std::string& argument) {
  return argument == "--help" || argument == "-help" || argument == "-h";
}

bool IsFlag(const std::string& argument) { return argument.size() > 1 && argument[0] == '-'; }

// Returns false if --help is among the arguments.
bool ParseArguments(const Command& command, const std::vector<std::string>& arguments) {
  std::vector<std::string> operands;
  for (size_t i = 0; i < arguments.size();) {
    const std::string& argument = arguments[i];
    if (IsHelp(argument)) return false;
    if (IsFlag(argument)) {
      i += ParseFlag(command, arguments, i);
      continue;
    }
    SKIFF_ENFORCE(!command.operand.empty(), kInvalidArgument, "\"", argument,
                  "\" is no flag; --help lists them");
    operands.push_back(argument);
    ++i;
  }
  if (command.operand.empty()) return true;
  SKIFF_ENFORCE(operands.size() == 1, kInvalidArgument, "expected one argument that is no flag, ",
                "found ", operands.size(), "; usage: ", command.usage);
  gflags::SetCommandLineOption(command.operand.c_str(), operands[0].c_str());
  return true;
}

std::string FlagsHelp(const Command& command) {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  std::erase_if(flags, [&](const auto& flag) {
    return !Takes(command, flag.name) || (command.flags.empty() && !IsOurs(flag));
  });
  std::sort(flags.begin(), flags.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string result;
  for (const auto& flag : flags) {
    const std::string value =
        flag.type == "string" ? "\"" + flag.default_value + "\"" : flag.default_value;
    result += StrCat("  --", flag.name, "  (", flag.type, ", default ", value, ")\n",
                     Indented(flag.description, 74));
  }
  return result;
}

void PrintSubcommands(const std::string& program, const std::string& summary,
                      const std::vector<Subcommand>& subcommands) {
  std::cout << summary << "\n\nusage: " << program << " SUBCOMMAND [flags]\n\n";
  for (const Subcommand& subcommand : subcommands) {
    std::cout << "  " << subcommand.name << "\n" << Indented(subcommand.summary, 74);
  }
  std::cout << "\n" << program << " SUBCOMMAND --help lists the flags of one.\n";
}

void PrintHelp(const Command& command) {
  std::cout << command.summary << "\n\nusage: " << command.usage << "\n\n" << FlagsHelp(command);
  if (command.epilogue) std::cout << "\n" << command.epilogue();
}

// Shells that `bazel run` opened, and the programs started there, have the variable, too.
bool IsInRunfiles(const std::filesystem::path& directory) {
  return std::ranges::any_of(directory,
                             [](const auto& part) { return part.extension() == ".runfiles"; });
}

void EnterDirectoryOfUser() {
  const char* directory = std::getenv("BUILD_WORKING_DIRECTORY");
  if (directory == nullptr) return;
  std::error_code error;
  const std::filesystem::path current = std::filesystem::current_path(error);
  if (error || !IsInRunfiles(current)) return;
  std::filesystem::current_path(directory, error);
  SKIFF_ENFORCE(!error, kIo, "enter directory ", directory, ": ", error.message());
}

// The C locale, for this thread, while it exists: gflags reads and shows numbers by strtod and
// printf, and a linked library may have set the locale of the process.
class CLocale {
 public:
  CLocale() : c_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(c_)) {}
  ~CLocale() {
    uselocale(before_);
    freelocale(c_);
  }
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;

 private:
  locale_t c_;
  locale_t before_;
};

}  // namespace

void PrintError(const std::string& message) {
  std::cout << std::flush;
  // As one piece, which the output of other processes doesn't cut in two.
  std::cerr << StrCat("error: ", message, "\n") << std::flush;
}

int CommandMain(int argc, char** argv, const Command& command) {
  int status_of_error = 2;  // while the arguments are at fault
  const CLocale locale;
  try {
    SetFlagDefaults(command.flag_defaults);
    if (!ParseArguments(command, {argv + 1, argv + argc})) {
      PrintHelp(command);
      return 0;
    }
    status_of_error = 1;
    EnterDirectoryOfUser();
    return command.run();
  } catch (const std::exception& error) {
    PrintError(error.what());
    return status_of_error;
  }
}

int SubcommandMain(int argc, char** argv, const std::string& summary,
                   const std::vector<Subcommand>& subcommands) {
  const std::string program = std::filesystem::path(argv[0]).filename();
  const std::string name = argc > 1 ? argv[1] : "";
  if (IsHelp(name)) {
    PrintSubcommands(program, summary, subcommands);
    return 0;
  }
  std::vector<std::string> names;
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.name == name) return CommandMain(argc - 1, argv + 1, subcommand.command);
    names.push_back(subcommand.name);
  }
  PrintError(StrCat(
      name.empty() ? "no subcommand is given" : StrCat("there is no subcommand \"", name, "\""),
      ": expected one of ", Join(names, ", "), "; --help lists them"));
  return 2;
}

bool IsFlagGiven(const std::string& name) {
  gflags::CommandLineFlagInfo info;
  SKIFF_ENFORCE(gflags::GetCommandLineFlagInfo(name.c_str(), &info), kNotFound,
                "there is no flag --", name);
  return !info.is_default;
}

void RefuseFlags(const std::vector<std::string>& names, std::string_view why) {
  for (const std::string& name : names) {
    SKIFF_ENFORCE(!IsFlagGiven(name), kInvalidArgument, "--", name, " changes nothing: ", why);
  }
}

}  // namespace skiff
