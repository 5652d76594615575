# Compiles programs in ESP to C in makefiles of GNU Make:
#
#   include $(shell pkg-config --variable=makefile quaject-esp)
#   main: main.c generated/program.c
#   	$(CC) -Igenerated -o $@ $^
#
# Below $(QJ_OUTPUT) there are rules for NAME.c and NAME.h of each NAME.esp in the folder of the makefile, or in $(QJ_SOURCES)
# if that is set. The C is compiled again only if it has changed. QJ_FLAGS are options of `qj build`, as in
# QJ_FLAGS = --style post; QJ_FLAGS_NAME are those of one program.

QJ ?= qj
QJ_OUTPUT ?= generated
QJ_SOURCES ?= .

# The stamp has the time of the last run of qj, which does not touch C that stays the same.
$(QJ_OUTPUT)/%.stamp: $(QJ_SOURCES)/%.esp
	$(QJ) build $< --emit c -o $(QJ_OUTPUT) $(QJ_FLAGS) $(QJ_FLAGS_$*) \
	  --depfile $(QJ_OUTPUT)/$*.d --stamp $@

# The recipe looks whether the file was removed; Make then looks at its time again.
$(QJ_OUTPUT)/%.c $(QJ_OUTPUT)/%.h: $(QJ_OUTPUT)/%.stamp
	@test -f $(QJ_OUTPUT)/$*.c -a -f $(QJ_OUTPUT)/$*.h || { rm -f $< && $(MAKE) --no-print-directory $<; }

.PRECIOUS: $(QJ_OUTPUT)/%.stamp $(QJ_OUTPUT)/%.c $(QJ_OUTPUT)/%.h

-include $(wildcard $(QJ_OUTPUT)/*.d)
