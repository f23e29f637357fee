// From the first sector of a disk to bare_main() (bare.cc) in 64-bit mode, with tiles allowed: all that an operating
// system would have done for the kernels. image.ld says where things lie; the disk is the image from its first byte.
        .section .start, "ax"
        .code16
        .globl start
start:
        cli
        xorw %ax, %ax
        movw %ax, %ds
        movw %ax, %es
        movw %ax, %ss
        movw $start, %sp
        ljmp $0, $read_image
read_image:
        movw $image_reads, %bp
1:      movw $packet, %si
        movb $0x42, %ah                 // of the disk that the BIOS started from, whose number is in dl
        int $0x13
        jc 2f
        addl $READ_SECTORS, packet + 8
        addw $READ_SECTORS * 512 / 16, packet + 6
        decw %bp
        jnz 1b
        cli                             // the BIOS has let interrupts in again
        inb $0x92, %al                  // the twentieth address line
        orb $2, %al
        outb %al, $0x92
        lgdt table
        movl %cr0, %eax
        orl $1, %eax
        movl %eax, %cr0
        ljmp $0x18, $start_32
2:      hlt
        jmp 2b

        .set READ_SECTORS, 64
        .balign 8
packet: .byte 16, 0
        .word READ_SECTORS
        .word 0, (0x7C00 + 512) / 16    // where to
        .quad 1                         // from which sector

        .balign 8
segments:
        .quad 0
        .quad 0x00AF9A000000FFFF        // 0x08: code of 64 bits
        .quad 0x00CF92000000FFFF        // 0x10: data
        .quad 0x00CF9A000000FFFF        // 0x18: code of 32 bits
table:  .word table - segments - 1
        .long segments

        .org 510
        .word 0xAA55

        .code32
start_32:
        movw $0x10, %ax
        movw %ax, %ds
        movw %ax, %es
        movw %ax, %ss
        movl $pages, %edi               // the first GiB, where it is: one entry of one table of one table
        xorl %eax, %eax
        movl $2048, %ecx
        rep stosl
        movl $pages + 4096 + 3, pages
        movl $0x83, pages + 4096
        movl $pages, %eax
        movl %eax, %cr3
        movl $1 << 5 | 1 << 9 | 1 << 10 | 1 << 18, %eax  // large addresses; SSE and its exceptions; XSETBV
        movl %eax, %cr4
        movl $0xC0000080, %ecx
        rdmsr
        orl $1 << 8, %eax
        wrmsr
        movl $0x80000033, %eax          // pages, and x87 as it should be; nothing is emulated or switched
        movl %eax, %cr0
        ljmp $0x08, $start_64

        .code64
start_64:
        movw $0x10, %ax
        movw %ax, %ds
        movw %ax, %es
        movw %ax, %ss
        movl $bss_begin, %edi
        movl $bss_end, %ecx
        subl %edi, %ecx
        shrl $3, %ecx
        xorl %eax, %eax
        rep stosq
        movl $stack_end, %esp
        fninit
        xorl %ecx, %ecx                 // x87, SSE, AVX, AVX-512's three, and the tiles' two
        xorl %edx, %edx
        movl $0x600E7, %eax
        xsetbv
        call bare_main
1:      hlt
        jmp 1b

// Exceptions: on_exception(number, where). Some push an error code, the others get one here.
        .section .text, "ax"
        .globl exception_entries
        .balign 16
exception_entries:
        .set number, 0
        .rept 32
        .balign 16
        .if !(number == 8 || (number >= 10 && number <= 14) || number == 17 || number == 21)
        pushq $0
        .endif
        pushq $number
        jmp exception
        .set number, number + 1
        .endr
exception:
        movq (%rsp), %rdi
        movq 16(%rsp), %rsi
        andq $-16, %rsp
        call on_exception
1:      hlt
        jmp 1b

        .section .note.GNU-stack, "", @progbits
