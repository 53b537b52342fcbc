# SPDX-License-Identifier: BSD-3-Clause
# What xdp-threads has printed, as a picture: gnuplot -e "table='threads.txt'; svg='OUT.svg'" plot.gp
set terminal svg size 1080,720 font "sans,12" background "white"
set output svg
set multiplot layout 2,3 title "Sending 60 B frames by threads that share XDP TX queues"
set logscale x 2
set xrange [0.8:320]
set xtics (1, 4, 16, 64, 256)
set xlabel "threads"
set grid ytics lc rgb "#dddddd"
set key top left reverse Left samplen 2
batches = "1 8 32 64"
colors = "#c44e52 #dd8452 #4c72b0 #55a868"
queues(q) = word("64 4 1", q + 1) . (q == 2 ? " queue" : " queues")

# Solid: all threads send, median; dashed: one of them alone, with the same lock.
set logscale y 2
set yrange [4:1024]
set ytics (4, 8, 16, 32, 64, 128, 256, 512, 1024)
do for [q=0:2] {
	set title queues(q)
	set ylabel q == 0 ? "cycles per packet, median; dashed: one alone" : ""
	plot for [b=0:3] table index q * 4 + b using 2:6 with linespoints lw 2 pt 7 ps 0.5 \
		lc rgb word(colors, b + 1) title "batch " . word(batches, b + 1), \
		for [b=0:3] table index q * 4 + b using 2:5 with lines dt 2 lw 1 \
		lc rgb word(colors, b + 1) notitle
}
unset logscale y
set yrange [0:*]
set ytics auto
do for [q=0:2] {
	set title queues(q)
	set ylabel q == 0 ? "of 1000 acquisitions: contended; dashed: yields" : ""
	plot for [b=0:3] table index q * 4 + b using 2:10 with linespoints lw 2 pt 7 ps 0.5 \
		lc rgb word(colors, b + 1) title "batch " . word(batches, b + 1), \
		for [b=0:3] table index q * 4 + b using 2:11 with lines dt 2 lw 1 \
		lc rgb word(colors, b + 1) notitle
}
unset multiplot
