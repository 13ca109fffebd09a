"""Words for what fails of colour and light."""

from __future__ import annotations

from collections.abc import Mapping

from echo_hf.engines.rules.words import phrases, words

EVERYTHING = {
    ("everything", "everything is", "everything looks", "it all", "all", "all turned"): (
        "yellow orange brown beige sepia green blue pink amber golden grey gray"
    ),
    ("todo", "todo sale", "todo se ve", "sale", "salen"): "amarillo naranja marrón verde azul rosa",
    ("est", "sont", "sort", "devient"): "jaune orange brun marron verdâtre bleuâtre",
    ("alles", "alles ist", "wird"): "gelb orange braun grün blau",
    ("tudo", "sai", "ficou", "tudo fica"): "amarelo laranja marrom verde azul",
    ("tutto", "viene", "diventa"): "giallo arancione marrone verde blu",
}
EVERYTHING_COLOURED = frozenset(
    f"{everything} {colour}"
    for several, colours in EVERYTHING.items()
    for everything in several
    for colour in colours.split()
)
COLOURS = words(en="red green blue purple pink white black brown grey gray teal beige gold silver")
CASTS = frozenset({"yellow", "orange", "sepia"})
TURNED = ("went", "turned", "is now", "are now", "comes out", "came out", "came back")
TURNED_COLOUR = frozenset(f"{turned} {colour}" for turned in TURNED for colour in COLOURS)
TURNED_CAST = frozenset(f"{turned} {colour}" for turned in TURNED for colour in CASTS)
NOT_COLOUR = frozenset(f"not {colour}" for colour in COLOURS)
FAULTS: Mapping[str, frozenset[str]] = {
    "colour cast": EVERYTHING_COLOURED
    | TURNED_CAST
    | phrases(
        en="""yellow tint, yellow cast, yellow filter, yellow hue, yellow tone, yellow tinge,
        yellow wash, warm haze, yellow haze, orange haze, beige cast, beige tint, yellow stain,
        orange tint, orange cast, orange filter, orange hue, sepia tint, sepia tone, sepia
        filter, piss filter, piss yellow, warm tint, warm cast, warm filter, brown tint, green
        tint, green cast, blue tint, blue cast, red tint, pink tint, color cast, colour cast,
        too yellow, too orange, too warm, warm yellow, yellowish, yellowed, yellowing, turns
        yellow, more yellow, yellower, looks yellow, tinted, orangey, too red, too green, too
        blue, jaundice, jaundiced""",
        es="""tinte amarillo, tono amarillo, tono amarillento, filtro amarillo, amarillento,
        amarillenta, amarillentos, todo amarillo, sale amarillo, sale amarilla, tono naranja,
        tono cálido, filtro sepia, tono sepia, se ve amarillo, se ve amarilla""",
        fr="""est jaune, sont jaunes, sort jaune, teinte jaune, filtre jaune, ton jaune,
        jaunâtre, jaunâtres, jaunie, jaunies, toute jaune, teinte orangée, teinte sépia, voile
        jaune, tire sur le jaune, vire au jaune, virent au jaune, dominante jaune""",
        de="""gelbstich, gelbstichig, farbstich, gelblich, gelbliche, gelblicher, alles gelb,
        gelber filter, rotstich, grünstich, blaustich, orangestich, sepiafilter, zu gelb,
        vergilbt""",
        pt="""amarelado, amarelada, amarelados, filtro amarelo, tom amarelo, tom amarelado, tudo
        amarelo, ficou amarelo, ficou amarela, alaranjado, alaranjada, filtro sépia""",
        it="""giallastro, giallastra, giallognolo, giallognola, ingiallito, ingiallita,
        ingialliti, filtro giallo, tinta gialla, tutto giallo, tono giallo, troppo giallo,
        troppo gialla, dominante gialla, virato al giallo""",
    ),
    "colour drift": phrases(
        en="color drift, colour drift, color shift, colour shift, wrong shade, colors bleed",
        de="farbverschiebung",
    ),
    "colour": TURNED_COLOUR
    | NOT_COLOUR
    | phrases(
        en="""wrong color, wrong colour, wrong colors, wrong colours, oversaturated, over
        saturated, desaturated, washed out, undersaturated, not blue, not red, not green, not
        yellow, not pink, not white, not black, not purple, not orange, discolored, discoloured,
        too saturated""",
        es="color equivocado, colores equivocados, color incorrecto, saturado, sobresaturado",
        fr="mauvaise couleur, mauvaises couleurs, délavé, délavée, saturé, pas bonne couleur",
        de="falsche farbe, falschen farben, falsche farben, übersättigt, ausgewaschen",
        pt="cor errada, cores erradas, desbotado, desbotada",
        it="colore sbagliato, colori sbagliati, slavato, slavata, saturo",
    ),
    "lighting": phrases(
        en="""too dark, too bright, overexposed, underexposed, blown out, wrong shadow, wrong
        shadows, no shadow, no shadows, shadow is wrong, flat lighting, bad lighting, light
        comes from""",
        es="demasiado oscuro, demasiado oscura, demasiado claro, sobreexpuesto",
        fr="trop sombre, trop clair, trop foncé, surexposé, sous exposé",
        de="zu dunkel, zu hell, überbelichtet, unterbelichtet",
        pt="escuro demais, escura demais, claro demais, superexposto",
        it="troppo scuro, troppo scura, troppo chiaro, sovraesposto",
    ),
}
TOPICS: Mapping[str, frozenset[str]] = {
    "colour cast": phrases(
        en="yellow, yellows, sepia, orange",
        es="amarillo, amarilla",
        fr="jaune",
        de="gelb",
        pt="amarelo",
        it="giallo",
    ),
    "colour": phrases(
        en="""color, colors, colour, colours, coloring, colouring, hue, hues, palette,
        saturation, skin tones, tones, white balance""",
        es="colores, tono, tonos, paleta",
        fr="couleur, couleurs, teinte, teintes",
        de="farbe, farben, farbton, farbtöne",
        pt="cor, cores",
        it="colore, colori, tonalità",
    ),
    "lighting": phrases(
        en="lighting, shadow, shadows, light source, exposure, highlights",
        es="iluminación, sombra, sombras, luz",
        fr="éclairage, ombre, ombres, lumière",
        de="beleuchtung, schatten, licht",
        pt="iluminação",
        it="illuminazione, ombra, luce, luci",
    ),
    "reflections": phrases(
        en="reflection, reflections, reflects, reflected, reflecting, mirror, mirrors",
        es="reflejo, reflejos, espejo, espejos",
        fr="reflet, reflets, miroir, miroirs",
        de="spiegelung, spiegelungen, spiegel, spiegelbild",
        pt="reflexo, reflexos, espelho",
        it="riflesso, riflessi, specchio",
    ),
}
HAN_FAULTS: Mapping[str, str] = {
    "colour cast": (
        "偏黄|偏黃|发黄|發黃|泛黄|泛黃|太黄|太黃|偏色|偏暖|偏红|偏紅|偏蓝|偏绿|黄色滤镜|黃色濾鏡"
        "|黄滤镜|蜡黄|黄ばみ|黄ばん|黄色っぽ|黄色く|黄色い|黄色すぎ|黄色味|黄味|黄みがか|セピアっぽ|色被り"
        "|色かぶり"
    ),
    "colour": (
        "颜色(?:不对|错|錯|变|怪|不一样)|顏色(?:不對|錯|變|怪)|色が(?:違|変|おかし|薄|濃|くすん)"
        "|色味が(?:違|変)|色合いが(?:違|変)|过饱和|過飽和|不是[蓝藍红紅绿綠黄黃白黑紫粉]"
    ),
    "lighting": (
        "太暗|太亮|过曝|過曝|光影(?:不|错|怪)|影子(?:不|错|怪|没)|暗すぎ|明るすぎ"
        "|影が(?:おかし|ない|変|逆)|白飛び"
    ),
    "reflections": "倒影(?:不|错|怪|没)|反射(?:が|不)|映り込み",
}
HAN_TOPICS: Mapping[str, str] = {
    "colour": "颜色|顏色|色调|色調|配色|色彩|色が|色味|色合い|の色",
    "lighting": "光影|阴影|陰影|光线|光線|影|ライティング|照明",
    "reflections": "倒影|反射|镜子|鏡",
}
