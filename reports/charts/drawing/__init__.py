"""What charts share: style, names beside marks, dots, bars, tiles, and the way to SVG."""
