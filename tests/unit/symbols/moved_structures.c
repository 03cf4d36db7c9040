/* SPDX-License-Identifier: MIT
 *
 * Not part of any program: test_layout.c compiles this for its debug information. It has PHP's structures,
 * with the members moved so that nothing is where a table has it, and spelled in all the ways that C allows.
 * With SHRUNK one of them is smaller than it must be.
 */
#include <stdint.h>

typedef struct _zval_struct {
	union {
		long lval;
	} value;
	union {
		uint32_t type_info;
	} u1;
	union {
		uint32_t num_args;
	} u2;
} zval;

typedef struct _zend_string {
	uint64_t moved;
	uint32_t refs;
	uint64_t h;
	uint64_t len;
	char val[1];
} zend_string;

struct executor {
	zval uninitialized_zval;
	zval error_zval;
	char moved[600];
	void *vm_stack_top;
	const struct {
		int first;
	} named;
	struct {
		void *vm_stack_end;
		union {
			void *vm_stack;
		};
	};
	void *current_execute_data;
};

typedef struct executor hidden;
typedef const hidden _zend_executor_globals;

struct _zend_execute_data {
	char moved[16];
	void *opline;
	zval This;
	void *prev_execute_data;
	char rest[80];
};

struct _zend_op_array {
	unsigned char type;
	uint32_t fn_flags;
	zend_string *function_name, *filename;
#ifdef SHRUNK
	char rest[8];
#else
	char rest[300];
#endif
};

struct _zend_class_entry {
	char type;
	zend_string *name;
	union {
		struct {
			zend_string *filename;
			uint32_t line_start;
		} user;
	} info;
};

struct _zend_op {
	uint32_t lineno;
	unsigned char opcode;
	char rest[32];
};

struct _zend_vm_stack {
	void *end, *top;
	char rest[16];
};

typedef struct {
	void *server_context;
	struct {
		char *request_method, *request_uri;
	} request_info;
} _sapi_globals_struct;

/* gcc describes what is used. */
_zend_executor_globals eg;
struct _zend_execute_data ex;
struct _zend_op_array op_array;
struct _zend_op op;
struct _zend_class_entry ce;
struct _zend_vm_stack vm_stack;
_sapi_globals_struct sg;
