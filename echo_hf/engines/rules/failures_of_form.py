"""Words for what fails of where things stand, and of the frame around them."""

from __future__ import annotations

from collections.abc import Mapping

from echo_hf.engines.rules.words import phrases

FAULTS: Mapping[str, frozenset[str]] = {
    "layout": phrases(
        en="""wrong place, wrong spot, wrong position, wrong location, wrong side, other side,
        opposite side, has moved, have moved, moved to, moved my, moved from, moved over, moved
        around, moved everything, it moved, got moved, rearranged, rearranges, not where, upside
        down, out of place, misplaced, shifted to, swapped places, changed layout, changed
        composition, floating above, halfway up, migrated to, relocated, jumped to, shuffled,
        reshuffled, ended up on, ended up in, ended up halfway, ended up under, ended up behind,
        ended up at, ended up next, ended up outside, ended up inside, ended up above, ended up
        below, ended up over, overlapping, overlaps, misaligned, not aligned, off center, off
        centre, not centered, not centred""",
        es="""se movió, se mueve, movió, cambió de sitio, cambió de lugar, lado equivocado,
        fuera de lugar, otro lado, mal colocado, mal colocada, al revés, sitio equivocado, lugar
        equivocado, descentrado""",
        fr="""déplacé, déplacée, déplacés, déplace, autre côté, mauvais côté, mauvais endroit,
        pas au bon endroit, bougé, pas à sa place, à l envers, décalé, décalée, mal placé, mal
        placée""",
        de="""verschoben, verrutscht, falschen stelle, falsche stelle, falscher stelle, andere
        seite, anderen seite, falsche seite, falschen seite, falsch platziert, auf dem kopf,
        versetzt, nicht mittig""",
        pt="""mudou de lugar, lado errado, fora do lugar, lugar errado, outro lado, moveu, de
        cabeça para baixo, mal posicionado, desalinhado""",
        it="""spostato, spostata, spostati, fuori posto, lato sbagliato, posto sbagliato, altra
        parte, capovolto, capovolta, sottosopra, disallineato""",
    ),
    "cropping": phrases(
        en="""cropped, crops, cropping, cut off, cuts off, cutting off, chopped off, chops off,
        chopped, out of frame, outside frame, outside of frame, cut out of frame, sliced off,
        lopped off, edges missing, head missing, got cut, gets cut, half cut, clipped, cuts _
        off, cut _ off, cuts top, cuts bottom, cuts head""",
        es="""recortado, recortada, recorta, recortó, cortado, cortada, corta la cabeza, se
        corta, fuera de cuadro""",
        fr="""coupé, coupée, coupés, coupe la tête, rogné, rognée, hors cadre, recadré, recadre,
        coupe toujours, coupe les pieds""",
        de="abgeschnitten, abgeschnittener, angeschnitten, beschnitten, schneidet, kopf ab",
        pt="cortou, cortaram, fora do quadro",
        it="tagliato, tagliata, tagliati, taglia la testa, fuori campo, ritagliato, mozzato",
    ),
    "aspect ratio": phrases(
        en="""wrong aspect ratio, wrong ratio, wrong format, wrong size, wrong dimensions, wrong
        orientation, got a square, gave me a square, gives me a square, comes out square, came
        out square, only square, it is square, made it square, not 16x9, not 9x16, not square,
        not landscape, not portrait, not vertical, not wide, ignores aspect, ignored aspect,
        stretched, squashed, squished, letterboxed, black bars""",
        es="""formato equivocado, salió cuadrado, salió cuadrada, sale cuadrado, sale cuadrada,
        es cuadrada, hace cuadrado, hace cuadrada, proporción equivocada, estirado, estirada,
        aplastado""",
        fr="""mauvais format, sort carré, sortie carrée, image carrée, étiré, étirée, écrasé,
        pas bon format, mauvais ratio""",
        de="""falsches format, falsches seitenverhältnis, quadratisch, gestreckt, gestaucht, nur
        quadrat, hochformat statt, querformat statt""",
        pt="formato errado, saiu quadrado, saiu quadrada, proporção errada, esticado, esticada",
        it="formato sbagliato, uscito quadrato, uscita quadrata, proporzioni sbagliate, stirato",
    ),
    "transparency": phrases(
        en="""checkerboard, checkered background, checker pattern, fake transparency, fake
        transparent, not transparent, transparency painted, white background instead, grey
        squares, gray squares""",
        es="fondo de cuadritos, cuadritos grises, damero, no es transparente, transparencia falsa",
        fr="damier, pas transparent, fausse transparence, petits carreaux",
        de="schachbrettmuster, schachbrett, karomuster, nicht transparent, graue kästchen",
        pt="quadriculado, não é transparente, transparência falsa",
        it="scacchiera, non è trasparente, quadretti, finta trasparenza",
    ),
    "left and right": phrases(
        en="""left and right, left or right, left from right, left is right, wrong way round,
        wrong way around, wrong hand, mirrored, mirror image, flipped, backwards, mirror
        flipped, confuses left, mixes up left, mixed up left, swapped left, reversed, wrong
        direction""",
        es="izquierda y derecha, confunde izquierda, espejado, invertido, en espejo",
        fr="gauche et droite, confond gauche, inversé, en miroir, inversée",
        de="links und rechts, verwechselt links, spiegelverkehrt, seitenverkehrt",
        pt="esquerda e direita, confunde esquerda, espelhado, espelhada",
        it="destra e sinistra, sinistra e destra, specchiato, specchiata, invertito",
    ),
    "proportions": phrases(
        en="""out of proportion, wrong scale, wrong proportions, too big, too small, too large,
        too tall, too short, too wide, too thin, giant head, huge head, tiny head, bobblehead,
        proportions are off, not to scale""",
        es="desproporcionado, desproporcionada, demasiado grande, demasiado pequeño",
        fr="disproportionné, disproportionnée, trop grand, trop petit, trop grande, trop petite",
        de="unproportional, zu groß, zu klein, falsche proportionen",
        pt="desproporcional, grande demais, pequeno demais",
        it="sproporzionato, sproporzionata, troppo grande, troppo piccolo",
    ),
}
TOPICS: Mapping[str, frozenset[str]] = {
    "layout": phrases(
        en="""layout, placement, position, positions, composition, arrangement, alignment,
        spacing, margins""",
        es="composición, disposición, posición, maquetación, ubicación",
        fr="mise en page, disposition, emplacement",
        de="anordnung, platzierung, aufbau, bildaufbau",
        pt="composição, disposição, posição, posicionamento",
        it="composizione, disposizione, posizione, impaginazione",
    ),
    "aspect ratio": phrases(
        en="""aspect ratio, aspect, ratio, format, dimensions, landscape format, portrait
        format, 16x9, 9x16, 4x5, 4x3, 3x4, 3x2, 2x3, 21x9, 1x1, square, widescreen, orientation,
        resolution size""",
        es="formato, proporción, relación de aspecto, cuadrado, cuadrada, apaisado, apaisada",
        fr="carré, carrée, paysage",
        de="seitenverhältnis, quadrat, hochformat, querformat",
        pt="proporção, quadrado, quadrada",
        it="quadrato, quadrata",
    ),
    "transparency": phrases(
        en="transparent, transparency, alpha channel, see through, transparent background",
        es="transparente, transparencia, fondo transparente",
        fr="transparence, fond transparent",
        de="transparenz, transparenter, transparenten",
        pt="transparência, fundo transparente",
        it="trasparente, trasparenza, sfondo trasparente",
    ),
    "perspective": phrases(
        en="perspective, vanishing point, viewpoint, camera angle, isometric",
        es="perspectiva, punto de fuga",
        fr="point de fuite, contre plongée",
        de="perspektive, fluchtpunkt, blickwinkel",
        pt="ponto de fuga",
        it="prospettiva, punto di fuga",
    ),
    "proportions": phrases(
        en="proportion, proportions, scale, size, sizes",
        es="proporciones, tamaño, escala",
        fr="taille, échelle",
        de="proportionen, größe, größenverhältnisse",
        pt="proporções, tamanho",
        it="proporzioni, dimensioni, scala",
    ),
    "background": phrases(
        en="background, backgrounds, backdrop",
        es="fondo",
        fr="arrière plan, décor",
        de="hintergrund",
        pt="fundo, plano de fundo",
        it="sfondo",
    ),
}
HAN_FAULTS: Mapping[str, str] = {
    "layout": (
        "位置(?:变|不对|错|都|跑|偏|不對|錯|變)|移位|跑到(?:了)?(?:另|别|右|左|上|下)|跑到"
        "|挪(?:了|到|走)|构图(?:变|乱|不)|構圖(?:變|亂|不)|布局(?:变|乱|不)|排版(?:乱|崩|错|亂)"
        "|位置が(?:違|変|ずれ|おかし)|配置が(?:違|変|ずれ)|構図が(?:違|変)|移動して(?:し|い)"
        "|レイアウトが"
    ),
    "cropping": (
        "被裁|裁掉|裁切|截掉|切掉|被切|缺了(?:头|頭|一角|脚|半)|没拍全|見切れ|切れて(?:い|し|る)"
        "|はみ出|途切れ|頭が切れ"
    ),
    "aspect ratio": (
        "比例(?:不对|错|錯|不對|变|还是|又)|正方形(?:的|了|じゃ|に)|方图|方圖"
        "|不是(?:横|竖|橫|豎|16)|横屏变|竖屏变|アスペクト比が|縦横比が|正方形になっ"
        "|横長にならない|縦長にならない|被拉伸|拉长了|压扁"
    ),
    "transparency": (
        "棋盘格|棋盤格|假透明|不透明|市松|チェッカー|チェック柄|格子(?:模様|背景)"
        "|透過(?:されて|になって|でき|され|し)(?:い)?(?:ない|ません)|透過じゃない"
    ),
    "left and right": (
        "左右(?:反|颠倒|顛倒|不分|搞反|弄反|逆|が逆|を間違)|镜像|鏡像|方向(?:反|错|錯)|反了"
        "|左右が|鏡文字|反転して|逆になっ|逆向き"
    ),
    "perspective": "透视(?:不|错|有|怪)|透視(?:不|錯|怪)|パースが|遠近(?:感)?が",
    "proportions": "比例失调|比例失調|头太大|頭太大|太大了|太小了|大きすぎ|小さすぎ|バランスが",
    "background": "背景(?:变|不|错|换|變|換|錯)|背景が(?:変|違|消|おかし)",
}
HAN_TOPICS: Mapping[str, str] = {
    "layout": "位置|布局|构图|構圖|排版|構図|配置|レイアウト",
    "aspect ratio": "比例|尺寸|正方形|长宽比|長寬比|横版|竖版|アスペクト|縦横比|サイズ|横長|縦長",
    "transparency": "透明|透過",
    "perspective": "透视|透視|パース|遠近",
    "background": "背景",
}
