// Where a program begins. The machine's own crt1.o calls the __libc_start_main of glibc 2.34, which runs constructors by
// itself. The older one, which is linked here, runs those that it is handed; newer glibcs have it, too.
	.text
	.globl	_start
	.type	_start, @function
_start:
	xorl	%ebp, %ebp
	movq	%rdx, %r9			// what the loader wants run at the end
	popq	%rsi				// argc
	movq	%rsp, %rdx			// argv
	andq	$-16, %rsp
	pushq	%rax
	pushq	%rsp				// the stack's end
	leaq	transept_csu_fini(%rip), %r8
	leaq	transept_csu_init(%rip), %rcx
	leaq	main(%rip), %rdi
	call	*__libc_start_main@GOTPCREL(%rip)
	hlt
	.size	_start, .-_start

	.section .rodata
	.globl	_IO_stdin_used
	.type	_IO_stdin_used, @object
_IO_stdin_used:
	.long	0x20001
	.size	_IO_stdin_used, 4

	.data
	.globl	__data_start
	.weak	data_start
__data_start:
data_start:
	.long	0
	.section .note.GNU-stack,"",@progbits
