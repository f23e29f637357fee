// Runs the program's constructors (see start.S). What ends it is run by the loader.
typedef void (*Constructor)(int, char**, char**);
extern Constructor __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void);

__attribute__((visibility("hidden"))) void transept_csu_init(int argc, char** argv, char** environment) {
  _init();
  for (Constructor* next = __init_array_start; next != __init_array_end; ++next) (*next)(argc, argv, environment);
}

__attribute__((visibility("hidden"))) void transept_csu_fini(void) {}
