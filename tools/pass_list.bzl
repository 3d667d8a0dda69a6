"""pass_list: the registry of passes, made from file names and the pipelines.

Each <name>_pass.h in the package declares a class <Name>Pass, derived from
ProgramPass or PlanPass, as its list in the pipelines file says: lines
`program <name>` or `plan <name>`, in the order in which they run; a line
`program -<name>` names a pass that exists and is not in the default pipeline.
"""

def pass_list(name, pipelines):
    native.genrule(
        name = name,
        srcs = [pipelines] + native.glob(["*_pass.h"]),
        outs = [name + ".cc"],
        cmd = "/usr/bin/python3 $(location //tools:pass_list.py) $(location %s) $@ $(SRCS)" % pipelines,
        tools = ["//tools:pass_list.py"],
    )
