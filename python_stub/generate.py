"""Writes the Python binding of the builder from its C++ declarations.

usage: generate.py --operators OPERATORS.md --core CORE.pyi --out FOLDER [--sources N] HEADER...

The headers are those of framework/builder and of options that Python shares with C++ (declarations.py reads them). From
one table of functions come

  functions_<n>.cc, functions.cc    a C++ function per overload, and the table that the extension module binds
  _skiff.pyi, layers.pyi, ...       the stubs; _skiff.pyi begins with CORE.pyi, which describes what is bound by hand

A new layer needs nothing but its declaration. A declaration with a type that has no Python form is an error.
"""
import argparse
import keyword
import os
import re
import sys
from dataclasses import dataclass, field
from typing import Dict, List, Optional

from python_stub.declarations import Class, DeclarationError, Enum, Field, Function, Struct, parse_files

# Headers of framework/builder for those who write layers; there is nothing in them for users.
# Those of blocks (block_call.h, control_flow.h, static_rnn.h) take functions, which Python can't give yet.
INTERNAL_HEADERS = {"averaged.h", "block_call.h", "build_state.h", "control_flow.h", "static_rnn.h", "dynamic_rnn.h", "tensor_array_layers.h", "call_site.h", "current_block.h", "fill_value.h", "gradient_ops.h", "layer_call.h", "layers.h", "number_like.h", "param_settings.h", "program_guard.h", "scaled_loss.h", "step_counter.h", "transformer_blocks.h", "variable.h", "variable_operators.h", "warning.h"}

# Namespace -> the Python module that binds all functions in it.
MODULES = {
    "skiff::layers": "layers",
    "skiff::initializer": "initializer",
    "skiff::learning_rate": "learning_rate",
    "skiff::optimizer": "optimizer",
    "skiff": "",
}
# Of the namespace skiff, only these are for users.
TOP_LEVEL = {"Gradients", "ClipByValue", "ClipByNorm", "ClipByGlobalNorm", "L1Decay", "L2Decay"}
# Classes whose methods are bound: all that are listed.
METHODS = {("Optimizer", "Minimize"), ("Optimizer", "ApplyGradients")}
# Structs that Python sees as classes. Other structs of options are keyword arguments of their function.
STRUCT_CLASSES = {
    "ParamAttr",
    "GradientMerge",
    "AveragedVariables",
    "LossScaling",
    "MemoryOptions",
    "PrecisionOptions",
}
# What constructors make, by base class.
BASES = {"Optimizer", "ParameterAverage"}

_CALLER = {"Site", "std::source_location"}
_NUMBERS = {"int32_t": "int", "int64_t": "int", "float": "float", "double": "float", "bool": "bool"}
# C++ type -> (Python annotation, whether None is the value of `{}`).
_TYPES = {
    "std::string": ("str", False),
    "DType": ("_DTypeLike", False),
    "Variable": ("Variable", True),
    "LearningRate": ("float | Variable", False),
    "Initializer": ("Initializer", True),
    "Regularizer": ("Regularizer", True),
    "GradientClip": ("GradientClip", True),
    "ParamAttr": ("ParamAttr", False),
    "OptionalParamAttr": ("ParamAttr | bool | None", False),
    "GradientMerge": ("GradientMerge", False),
    "AveragedVariables": ("AveragedVariables", False),
    "LossScaling": ("LossScaling", False),
    "PrecisionOptions": ("PrecisionOptions | _DTypeLike", False),
    "Extent2d": ("int | Sequence[int]", False),
    "Extent3d": ("int | Sequence[int]", False),
    "std::vector<std::string>": ("Sequence[str | Variable]", False),
    "std::vector<Variable>": ("Sequence[Variable]", False),
    "std::vector<std::pair<Variable, Variable>>": ("Sequence[tuple[Variable, Variable]]", False),
    "std::vector<int32_t>": ("Sequence[int]", False),
    "std::vector<int64_t>": ("Sequence[int]", False),
    "std::vector<float>": ("Sequence[float]", False),
    "std::vector<double>": ("Sequence[float]", False),
    "std::map<std::string, double>": ("Mapping[str, float]", False),
    "std::function<bool(const std::string& parameter)>": ("Callable[[str], bool]", True),
    "std::function<float(const std::string& parameter)>": ("Callable[[str], float]", True),
}
_TYPES.update({name: (python, False) for name, python in _NUMBERS.items()})
_ALIASES = {"BiasAttr": "OptionalParamAttr"}
_RESULTS = {
    "void": "None",
    "Variable": "Variable",
    "std::vector<Variable>": "list[Variable]",
    "std::vector<std::string>": "list[str]",
    "const std::vector<std::string>&": "list[str]",
    "Initializer": "Initializer",
    "Regularizer": "Regularizer",
    "GradientClip": "GradientClip",
    "Minimized": "Minimized",
    "std::unique_ptr<Optimizer>": "Optimizer",
}
# What a message or a stub shows of a default that isn't a plain value.
_UNSPOKEN = "..."


def fail(place, message):
    raise DeclarationError(f"{place}: {message}")


def snake_case(name):
    """"Conv2dTranspose" -> "conv2d_transpose", "LoDReset" -> "lod_reset"; a keyword of Python gets an underscore."""
    name = name.replace("LoD", "Lod")
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return text + "_" if keyword.iskeyword(text) else text


def enumerator(name):
    """"kDecayAndNorms" -> "decay_and_norms"."""
    return snake_case(name[1:])


def plain(cpp_type):
    """A type without const and reference, and with aliases resolved."""
    text = re.sub(r"^const ", "", cpp_type).rstrip("&*")
    return _ALIASES.get(text, text)


def local(cpp_type):
    """The name of a type without its namespaces."""
    return cpp_type.split("::")[-1]


@dataclass
class Parameter:
    """An argument of a Python function."""

    name: str
    annotation: str
    default: Optional[str]  # Python's; None: required
    is_keyword: bool  # has to be named
    doc: str
    read: str  # the C++ statement that reads it, with $ for its number


@dataclass
class Call:
    """One C++ function, as Python calls it."""

    place: object
    parameters: List[Parameter]
    declarations: List[str]  # of the C++ variables
    expression: str  # the call; of a struct: empty
    result: str  # Python's annotation
    fields: List[Field]  # of a struct of results, which becomes a named tuple; else none
    doc: str
    struct: Optional[Struct] = None  # whose fields the arguments are, without a call


@dataclass
class Binding:
    """A name in Python, and the C++ functions behind it."""

    module: str
    owner: str
    name: str
    namespace: str
    calls: List[Call] = field(default_factory=list)


class Table:
    """All bindings, made from headers."""

    def __init__(self, headers, operator_docs):
        self.operator_docs = operator_docs
        self.structs: Dict[str, Struct] = {}
        self.enums: Dict[str, Enum] = {}
        self.classes: Dict[str, Class] = {}
        self.tuples: Dict[str, Struct] = {}  # structs that functions return
        self.bindings: Dict[tuple, Binding] = {}
        functions = []
        named = {Struct: self.structs, Enum: self.enums, Class: self.classes}
        for header in headers:
            for declared in header.declarations:
                if isinstance(declared, Function):
                    functions.append(declared)
                else:
                    named[type(declared)][declared.name] = declared
        for name in sorted(STRUCT_CLASSES & set(self.structs)):
            self.add_struct(self.structs[name])
        for function in functions:
            if function.place.namespace not in MODULES:
                fail(function.place, f"{function.place.namespace} has no Python module, expected one of "
                     + ", ".join(MODULES))
            if function.place.namespace != "skiff" or function.name in TOP_LEVEL:
                self.add_function(function)
        for declared in self.classes.values():
            self.add_class(declared)

    def binding(self, namespace, owner, name):
        key = (MODULES[namespace], owner, name)
        return self.bindings.setdefault(key, Binding(key[0], owner, name, namespace))

    def add_function(self, function):
        result = local(plain(function.result)) if function.result not in _RESULTS else ""
        if result:
            if result not in self.structs:
                fail(function.place, f"{function.name} returns {function.result}, which has no Python form")
            self.tuples[result] = self.structs[result]
        call = self.call(function, f"{function.place.namespace}::{function.name}", result or _RESULTS[function.result])
        call.fields = self.tuples[result].fields if result else []
        call.doc = function.doc or self.operator_docs.get(snake_case(function.name), "")
        self.binding(function.place.namespace, "", snake_case(function.name)).calls.append(call)

    def add_class(self, declared):
        base = declared
        while base.base and base.name not in BASES:
            if local(base.base) not in self.classes:
                fail(base.place, f"the base class {base.base} isn't declared in these headers")
            base = self.classes[local(base.base)]
        if base.name not in BASES:
            return
        for method in declared.methods:
            if (declared.name, method.name) in METHODS:
                self_parameter = Parameter("self", declared.name, None, False, "", "arguments.Read($, &self);")
                call = self.call(method, f"self->{method.name}", _RESULTS[method.result], [self_parameter],
                                 [f"const {declared.name}* self = nullptr;"])
                call.doc = method.doc
                namespace = declared.place.namespace
                self.binding(namespace, declared.name, snake_case(method.name)).calls.append(call)
        if declared.constructor:
            constructor = declared.constructor
            made = f"std::unique_ptr<{base.name}>(std::make_unique<{declared.name}>"
            call = self.call(constructor, made, base.name)
            call.expression += ")"
            call.doc = "\n\n".join(doc for doc in (declared.doc, constructor.doc) if doc)
            self.binding(declared.place.namespace, "", declared.name).calls.append(call)

    def add_struct(self, struct):
        if struct.others:
            fail(struct.place, f"{struct.name} has members that are no fields: {struct.others[0]}")
        parameters = [self.option(member, struct, "value->") for member in struct.fields]
        call = Call(struct.place, parameters, [], "", struct.name, [], struct.doc, struct)
        namespace = struct.place.namespace if struct.place.namespace in MODULES else "skiff"
        self.binding(namespace, "", struct.name).calls.append(call)

    def call(self, function, callee, result, first=(), declarations=()):
        """The parameters that have to be named come last."""
        positional, named = list(first), []
        declarations, arguments = list(declarations), []
        for parameter in function.parameters:
            cpp_type = plain(parameter.type)
            if cpp_type in _CALLER:
                continue
            struct = self.structs.get(local(cpp_type))
            if struct is None or struct.name in STRUCT_CLASSES or local(cpp_type) in _TYPES:
                declarations.append(self.declaration(parameter, cpp_type, function.place))
                positional.append(self.argument(parameter, function.place))
                arguments.append(parameter.name)
                continue
            if struct.others:
                fail(struct.place, f"{struct.name} has members that are no fields: {struct.others[0]}")
            name = parameter.name or "options"
            declarations.append(f"{struct.place.namespace}::{struct.name} {name};")
            named += [self.option(member, struct, name + ".") for member in struct.fields]
            arguments.append(name)
        names = [parameter.name for parameter in positional + named]
        for name in names:
            if names.count(name) > 1 or name == "arguments":
                fail(function.place, f"{function.name}: two parameters are called {name}")
        return Call(function.place, positional + named, declarations, f"{callee}({', '.join(arguments)})", result, [],
                    "")

    def declaration(self, parameter, cpp_type, place):
        if not parameter.name:
            fail(place, f"a parameter of type {parameter.type} without a name")
        if parameter.default is not None:
            return f"{cpp_type} {parameter.name} = {parameter.default};"
        # It has no value before it is read.
        return f"{cpp_type} {parameter.name}" + ("{0.0};" if cpp_type == "LearningRate" else "{};")

    def argument(self, parameter, place):
        cpp_type = plain(parameter.type)
        return Parameter(self.python_name(parameter.name), self.annotation(cpp_type, parameter.default, place),
                         self.default(cpp_type, parameter.default, place), False, parameter.doc,
                         f"arguments.Read($, &{parameter.name});")

    def option(self, member, struct, prefix):
        """A field of a struct, which always has a default."""
        cpp_type = plain(member.type)
        place = f"{struct.place}: {struct.name}::{member.name}"
        enum = self.enum(cpp_type, struct)
        if enum:
            scope = f"{struct.place.namespace}::{struct.name}" if enum in struct.enums else enum.place.namespace
            names = ", ".join(f'{{"{enumerator(value)}", {scope}::{enum.name}::{value}}}' for value in enum.values)
            read = f"arguments.ReadName<{scope}::{enum.name}>($, {{{names}}}, &{prefix}{member.name});"
            annotation = "Literal[" + ", ".join(f'"{enumerator(value)}"' for value in enum.values) + "]"
            default = f'"{enumerator(local(member.default))}"'
        else:
            read = f"arguments.Read($, &{prefix}{member.name});"
            default = self.default(cpp_type, member.default or "{}", place)
            annotation = self.annotation(cpp_type, member.default or "{}", place)
        return Parameter(self.python_name(member.name), annotation, default, True, member.doc, read)

    def enum(self, cpp_type, struct):
        for enum in struct.enums:
            if enum.name == local(cpp_type):
                return enum
        return self.enums.get(local(cpp_type))

    @staticmethod
    def python_name(name):
        return name + "_" if keyword.iskeyword(name) else name

    def annotation(self, cpp_type, default, place):
        optional = re.match(r"^std::optional<(.*)>$", cpp_type)
        if optional:
            return self.annotation(optional.group(1), None, place) + " | None"
        name = cpp_type if cpp_type in _TYPES else local(cpp_type)
        if name not in _TYPES:
            fail(place, f"{cpp_type} has no Python form")
        annotation, is_none = _TYPES[name]
        return annotation + (" | None" if is_none and default is not None else "")

    def default(self, cpp_type, default, place):
        """The Python expression of a C++ default."""
        if default is None:
            return None
        if default in ("{}", "std::nullopt"):
            if cpp_type.startswith("std::optional<"):
                return "None"
            name = cpp_type if cpp_type in _TYPES else local(cpp_type)
            if _TYPES.get(name, ("", False))[1]:
                return "None"
            if cpp_type.startswith("std::vector<"):
                return "()"
            return {"std::string": '""', "std::map<std::string, double>": "{}"}.get(cpp_type, _UNSPOKEN)
        if default in ("true", "false"):
            return default.capitalize()
        if default.startswith('"'):
            return default
        if default.startswith("DType::k"):
            return f'"{default[len("DType::k"):].lower()}"'
        if re.match(r"^-?[\d.]+(e-?\d+)?f?$", default):
            return default.rstrip("f")
        if cpp_type.startswith("std::vector<") and re.match(r"^\{-?\d+(, -?\d+)+\}$", default):
            return f"({default[1:-1]})"
        return fail(place, f"the default {default} of type {cpp_type} has no Python form")


# ---- docs

_CODES = re.compile(r"([Tt])hrows (?:an )?Error \(k(\w+)\)")


def python_doc(text):
    """A contract in Python's terms."""
    text = _CODES.sub(lambda m: f"{'R' if m.group(1) == 'T' else 'r'}aises {m.group(2)}Error", text)
    text = re.sub(r"\b([Tt])hrows?\b", lambda m: "Raises" if m.group(1) == "T" else "raises", text)
    return text.replace("std::nullopt", "None").replace("nullptr", "None")


def signature(binding, call):
    parts = []
    for i, parameter in enumerate(call.parameters):
        if parameter.is_keyword and (i == 0 or not call.parameters[i - 1].is_keyword):
            parts.append("*")
        parts.append(parameter.name if parameter.default is None else f"{parameter.name}={parameter.default}")
    return f"{binding.name}({', '.join(parts)})"


def docstring(binding):
    """With a first line that inspect.signature reads, if there is one signature only."""
    calls = binding.calls
    lines = [signature(binding, call) for call in calls]
    head = lines[0] + "\n--\n\n" if len(calls) == 1 else "\n".join(lines) + "\n\n"
    parts = list(dict.fromkeys(python_doc(call.doc) for call in calls if call.doc))
    described = {p.name: p.doc for call in calls for p in call.parameters if p.doc}
    if described:
        lines = [f"  {name}: {python_doc(doc)}" for name, doc in described.items()]
        parts.append("\n".join(["Keyword arguments:"] + lines))
    return head + "\n\n".join(parts)


# ---- C++

def quoted(text):
    return 'R"doc(' + text + ')doc"'


def emit_call(binding, call, number):
    name = f"Call{number}"
    statements = list(call.declarations)
    statements += [parameter.read.replace("$", str(i)) for i, parameter in enumerate(call.parameters)]
    if call.struct:
        head = f"void {name}(const Arguments& arguments, void* object) {{"
        cast = f"auto* value = static_cast<{call.struct.place.namespace}::{call.struct.name}*>(object);"
        statements = [cast] + statements
    else:
        unused = "" if call.parameters else "[[maybe_unused]] "
        head = f"PythonObject* {name}({unused}const Arguments& arguments) {{"
        statements += returned(call)
    lines = [f"// {call.place}", head] + [f"  {statement}" for statement in statements] + ["}", ""]
    parameters = ", ".join(f'{{"{p.name}", {"true" if p.default is None else "false"}}}' for p in call.parameters)
    if call.parameters:
        lines += [f"constexpr Parameter kParameters{number}[] = {{{parameters}}};", ""]
    return lines


def returned(call):
    if call.result == "None":
        return [call.expression + ";", "return ToPython();"]
    if call.fields:
        values = ", ".join(f"result.{f.name}" for f in call.fields)
        return [f"const auto result = {call.expression};", f'return ToPython("{call.result}", {{{values}}});']
    return [f"return ToPython({call.expression});"]


def emit_source(bindings, number):
    """The source of some bindings, all of one namespace or not."""
    lines = ["// Generated by python_stub/generate.py from the headers of the builder.",
             '#include "python_stub/arguments.h"', '#include "skiff/skiff.h"', "", "namespace skiff::python {",
             "namespace {", ""]
    table = []
    calls = 0
    for binding in bindings:
        overloads = []
        lines += [f"namespace from_{calls} {{", f"using namespace {binding.namespace};", ""]
        for call in binding.calls:
            lines += emit_call(binding, call, calls)
            positional = sum(not p.is_keyword for p in call.parameters)
            parameters = f"kParameters{calls}" if call.parameters else "{}"
            functions = f"nullptr, Call{calls}" if call.struct else f"Call{calls}, nullptr"
            overloads.append(f"{{{parameters}, {positional}, {functions}}}")
            calls += 1
        first = calls - len(binding.calls)
        lines += [f"constexpr Overload kOverloads[] = {{{', '.join(overloads)}}};",
                  f"}}  // namespace from_{first}", ""]
        owner = f'"{binding.owner}"' if binding.owner else "nullptr"
        table.append(f'{{"{binding.module}", {owner}, "{binding.name}", {quoted(docstring(binding))}, '
                     f"from_{first}::kOverloads}},")
    lines += ["constexpr BoundFunction kFunctions[] = {"] + table + ["};", "", "}  // namespace", "",
              f"std::span<const BoundFunction> Functions{number}() {{ return kFunctions; }}", "",
              "}  // namespace skiff::python", ""]
    return "\n".join(lines)


def emit_list(table, sources):
    lines = ["// Generated by python_stub/generate.py.", '#include "python_stub/bound_functions.h"', "",
             "namespace skiff::python {", ""]
    lines += [f"std::span<const BoundFunction> Functions{i}();" for i in range(sources)]
    tuples = [f'{{"{MODULES[t.place.namespace]}", "{t.name}", {{' + ", ".join(f'"{f.name}"' for f in t.fields) + "}},"
              for t in table.tuples.values()]
    lines += ["", "std::vector<BoundTuple> BoundTuples() {", "  return {"] + tuples + ["  };", "}"]
    lines += ["", "std::vector<std::span<const BoundFunction>> BoundFunctions() {",
              f"  return {{{', '.join(f'Functions{i}()' for i in range(sources))}}};", "}", "",
              "}  // namespace skiff::python", ""]
    return "\n".join(lines)


# ---- stubs

_STUB_HEAD = '''"""Generated by python_stub/generate.py from the headers of the builder."""
from typing import Callable, Literal, Mapping, NamedTuple, Sequence, overload
'''


def stub_parameters(call):
    parts = []
    for i, parameter in enumerate(call.parameters):
        if parameter.name == "self":
            parts.append("self")
            continue
        if parameter.is_keyword and (i == 0 or not call.parameters[i - 1].is_keyword):
            parts.append("*")
        default = "" if parameter.default is None else f" = {parameter.default}"
        parts.append(f"{parameter.name}: {parameter.annotation}{default}")
    return ", ".join(parts)


def stub_function(binding, indent=""):
    # For type checkers a list of whole numbers is one of numbers, too: overloads for both are one.
    texts = [f"def {binding.name}({stub_parameters(call)}) -> {call.result}: ..." for call in binding.calls]
    texts = list(dict.fromkeys(text.replace("values: Sequence[int]", "values: Sequence[float]") for text in texts))
    head = [f"{indent}@overload"] if len(texts) > 1 else []
    return [line for text in texts for line in head + [indent + text]]


def emit_stub(table, module, core_names):
    """The stub of a module other than _skiff."""
    bindings = [b for b in table.bindings.values() if b.module == module]
    tuples = [t for t in table.tuples.values() if MODULES[t.place.namespace] == module]
    body = []
    for struct in tuples:
        body += ["", f"class {struct.name}(NamedTuple):"] + [f"    {f.name}: Variable" for f in struct.fields]
    for binding in bindings:
        if binding.owner:
            continue
        body += [""] + (stub_class(binding) if binding.calls[0].struct else stub_function(binding))
    text = "\n".join(body)
    needed = sorted(name for name in core_names if re.search(rf"\b{name}\b", text)
                    and not re.search(rf"^class {name}\b", text, re.M))
    imports = f"from ._skiff import {', '.join(needed)}\n" if needed else ""
    return _STUB_HEAD + imports + text + "\n"


def stub_class(binding):
    call = binding.calls[0]
    parameters = stub_parameters(call)
    return [f"class {binding.name}:", f"    def __init__(self, {parameters}) -> None: ..."]


def emit_core_stub(table, core):
    """CORE.pyi, with the generated methods in place of `...  # generated: <class>`, and the top-level functions."""
    def methods(match):
        owner = match.group(2)
        bound = [b for b in table.bindings.values() if b.owner == owner]
        if not bound:
            raise DeclarationError(f"core.pyi: nothing is generated for the class {owner}")
        return "\n".join("\n".join(stub_function(b, match.group(1))) for b in bound)

    text = re.sub(r"^( +)# generated: (\w+)$", methods, core, flags=re.M)
    lines = []
    for binding in table.bindings.values():
        if binding.module == "" and not binding.owner:
            lines += [""] + (stub_class(binding) if binding.calls[0].struct else stub_function(binding))
    return text + "\n".join(lines) + "\n"


# ---- the program

def operator_docs(text):
    """{op type: the first paragraph of its section} of docs/operators.md."""
    return dict(re.findall(r"^## (\w+)\n\n([^|\n][^\n]*)", text, re.M))


def make_table(headers, operators):
    paths = [path for path in headers if os.path.basename(path) not in INTERNAL_HEADERS]
    return Table(parse_files(paths), operator_docs(operators))


def outputs(table, core, sources):
    """{file name: text} of all that is generated."""
    bindings = list(table.bindings.values())
    files = {"functions.cc": emit_list(table, sources), "_skiff.pyi": emit_core_stub(table, core)}
    size = -(-len(bindings) // sources)
    for i in range(sources):
        files[f"functions_{i}.cc"] = emit_source(bindings[i * size:(i + 1) * size], i)
    core_names = re.findall(r"^(?:class )?(_?[A-Z]\w*)\b", files["_skiff.pyi"], re.M)
    for module in sorted(set(MODULES.values()) - {""}):
        files[module + ".pyi"] = emit_stub(table, module, core_names)
    return files


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--operators", required=True)
    parser.add_argument("--core", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--sources", type=int, default=3)
    parser.add_argument("headers", nargs="+")
    arguments = parser.parse_args()
    texts = []
    for path in (arguments.operators, arguments.core):
        with open(path, encoding="utf-8") as stream:
            texts.append(stream.read())
    try:
        files = outputs(make_table(arguments.headers, texts[0]), texts[1], arguments.sources)
    except DeclarationError as error:
        sys.exit(f"generate.py: {error}")
    os.makedirs(os.path.join(arguments.out, "skiff"), exist_ok=True)
    for name, text in files.items():
        folder = os.path.join(arguments.out, "skiff") if name.endswith(".pyi") else arguments.out
        with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
            stream.write(text)


if __name__ == "__main__":
    main()
