"""Words for what fails of style and finish."""

from __future__ import annotations

from collections.abc import Mapping

from echo_hf.engines.rules.words import phrases

FAULTS: Mapping[str, frozenset[str]] = {
    "style mismatch": phrases(
        en="""wrong style, more pixar than, more anime than, more cartoon than, more disney
        than, more photo than, more like anime, more like pixar, more like photo, more like
        cartoon, different style, not the style, not same style, not my style, style drift,
        style changed, style is off, style off, style mismatch, off style, lost the style, loses
        style, style is wrong, not pixel art, not pixel, not real pixel, not watercolor, not
        watercolour, not anime, not ghibli, not cartoon, not oil, not line art, not vector,
        style inconsistent""",
        es="otro estilo, estilo equivocado, no es el estilo, estilo distinto, estilo diferente",
        fr="mauvais style, pas le style, pas bon style, autre style, style différent",
        de="""falscher stil, falschen stil, nicht der stil, anderer stil, stilbruch, stil passt
        nicht""",
        pt="estilo errado, não é o estilo, outro estilo",
        it="stile sbagliato, non è lo stile, altro stile, stile diverso",
    ),
    "ai look": phrases(
        en="""see it ai, see it is ai, tell it ai, tell it is ai, looks like ai, look like ai,
        looks ai, look ai, looks ai generated, obviously ai, ai look, ai slop, slop, ai sheen,
        ai gloss, ai shine, ai face, ai glow, usual ai, typical ai, ai vibe, screams ai, plastic
        skin, plasticky, plastic, waxy, wax figure, too smooth, too perfect, too clean, too
        polished, too glossy, too shiny, airbrushed, overcooked, over processed, overprocessed,
        uncanny, uncanny valley, looks fake, look fake, fake looking, doll like, rubbery, cgi
        look, looks cgi, soulless, lifeless, overly smooth, oversmoothed, video game look,
        artificial, artificial looking, dead eyes, dead inside, like doll, like wax, like
        mannequin, like plastic""",
        es="""parece ia, se nota que es ia, se nota la ia, plástico, de plástico, piel de
        plástico, demasiado perfecto, demasiado liso, sin alma, se ve falso, parece falso""",
        fr="""fait ia, ça fait ia, on voit que c est de l ia, plastique, peau plastique,
        artificiel, artificielle, trop lisse, trop parfait, trop parfaite, sans âme, fait faux""",
        de="""dass es ki ist, dass das ki ist, sieht nach ki aus, nach ki aus, wie ki aus,
        typisch ki, ki look, plastik, plastikhaut, künstlich, zu glatt, zu perfekt, seelenlos,
        wachsfigur, leblos, sieht fake aus""",
        pt="cara de ia, dá pra ver que é ia, plastificado, liso demais, perfeito demais, sem alma",
        it="""sembra ia, si vede che è ia, plastica, di plastica, plastificato, artificiale,
        finto, finta, troppo liscio, troppo liscia, troppo perfetto, senz anima""",
    ),
    "generic look": phrases(
        en="""generic, bland, boring, stock photo, stocky, cookie cutter, uninspired, soulless
        design, clip art, clipart, cliché, cliche, unoriginal, derivative, too generic, one note""",
        es="genérico, genérica, soso, sosa, aburrido, aburrida, sin gracia",
        fr="générique, banal, banale, ennuyeux, sans intérêt",
        de="generisch, langweilig, beliebig, belanglos, einfallslos, nullachtfünfzehn",
        pt="sem graça, sem sal, chato",
        it="generico, generica, noioso, scialbo, anonimo",
    ),
    "originality": phrases(
        en="""same composition, same pose, same thing every time, all look same, look same,
        looks same, looks like same, look like same, same face, copied, copies, plagiarised,
        plagiarized, ripped off, rip off, no originality, no creativity, not original, not
        creative""",
        es="siempre lo mismo, siempre igual, siempre misma, copiado, plagio, todas iguales",
        fr="toujours pareil, copié, plagiat, tous pareils, se ressemblent tous",
        de="immer gleich, immer gleiche, kopiert, alle gleich",
        pt="sempre igual, sempre mesma, sempre o mesmo, plágio, todas iguais",
        it="sempre uguale, sempre stesso, sempre stessa, copiato, tutti uguali",
    ),
    "blur": phrases(
        en="""blurry, blurred, blurs, blurring, out of focus, not sharp, fuzzy, smear, smears,
        smeared, smudged, soft focus""",
        es="borroso, borrosa, borrosos, desenfocado, desenfocada, poco nítido",
        fr="flou, floue, flous, pas net, pas nette",
        de="unscharf, verschwommen, matschig, nicht scharf, verwaschen",
        pt="borrado, borrada, embaçado, embaçada, desfocado, desfocada",
        it="sfocato, sfocata, sfuocato, sfuocata, mosso, poco nitido",
    ),
    "artefacts": phrases(
        en="""artifact, artifacts, artefact, artefacts, glitch, glitches, glitched, glitchy,
        seams, visible seam, halo, halos, banding, weird lines, grid pattern""",
        es="artefactos",
        fr="artéfacts",
        de="artefakte, bildfehler",
        pt="artefatos",
        it="artefatti",
    ),
    "low quality": phrases(
        en="""pixelated, low res, low resolution, low quality, poor quality, bad quality,
        grainy, noisy, jpeg, compressed, poor resolution, lower quality, quality loss, quality
        drops, degraded, degrades, degradation, muddy, mushy, downscaled""",
        es="pixelado, pixelada, baja resolución, baja calidad, mala calidad, poca calidad",
        fr="pixelisé, pixelisée, basse résolution, mauvaise qualité, basse qualité, granuleux",
        de="verpixelt, pixelig, niedrige auflösung, schlechte qualität, geringe auflösung, körnig",
        pt="baixa resolução, baixa qualidade, má qualidade, qualidade ruim",
        it="pixelato, sgranato, sgranata, bassa risoluzione, bassa qualità, scarsa qualità",
    ),
}
TOPICS: Mapping[str, frozenset[str]] = {
    "style mismatch": phrases(
        en="""style, styles, aesthetic, art style, ghibli, pixar, pixel art, pixels, watercolor,
        watercolour, gouache, oil painting, anime, cartoon, line art, linocut, woodcut, etching,
        engraving, claymation, clay, lego, brushstrokes, medium""",
        es="estilo, acuarela, óleo, trazo, trazos",
        fr="aquarelle, peinture à l huile, coup de crayon",
        de="stil, aquarell, ölgemälde, zeichenstil, pinselstriche",
        pt="aquarela, traço, traços",
        it="stile, acquerello, tratto",
    ),
    "lost detail": phrases(
        en="detail, details, texture, textures, fine lines, lines",
        es="detalle, detalles, textura, texturas, líneas",
        fr="détail, détails, lignes",
        de="texturen, textur, linien",
        pt="detalhe, detalhes, linhas",
        it="dettaglio, dettagli, linee",
    ),
}
HAN_FAULTS: Mapping[str, str] = {
    "style mismatch": (
        "风格(?:不对|不一|变|跑|完全|差)|風格(?:不對|不一|變|跑)|画风(?:不|变|突变|跑)"
        "|畫風(?:不|變)|不是(?:这个|那种|这种)?风格|スタイルが(?:違|変)|画風が(?:違|変)"
        "|絵柄が(?:違|変)|タッチが(?:違|変)|ぽくない|っぽくない"
    ),
    "ai look": (
        "ai味|ai感|ai风|一看就是ai|一眼ai|塑料感|塑膠感|塑料|假脸|磨皮|太光滑|油腻|油膩|蜡像|太假"
        "|很假|好假|aiっぽ|aiくさ|ai臭|いかにもai|ツルツル|つるつる|テカテカ|プラスチック|蝋人形"
        "|マネキン|のっぺり"
    ),
    "generic look": (
        "千篇一律|没(?:有)?特色|很普通|无聊|無聊|没创意|沒創意|套路|ありきたり|つまらな|平凡"
        "|面白みがな|個性がな"
    ),
    "blur": "模糊|糊了|很糊|好糊|太糊|糊成|不清晰|不够清|ぼやけ|ボケて|ぼけて|ピンボケ|不鮮明",
    "artefacts": "伪影|偽影|アーティファクト",
    "low quality": (
        "画质(?:差|低|不|下降|很)|畫質(?:差|低|不|下降|很)|分辨率(?:低|不|太)|解析度(?:低|不|太)"
        "|像素(?:低|太)|噪点|画質が(?:悪|落|低|荒)|解像度が(?:低|足り)|低画質|ノイズ|荒い|粗い"
    ),
    "lost detail": (
        "细节(?:不|丢|没|糊|少|差)|細節(?:不|丟|沒|糊|少|差)|ディテールが|細部が|細かいところが"
    ),
}
HAN_TOPICS: Mapping[str, str] = {
    "style mismatch": "风格|風格|画风|畫風|スタイル|画風|絵柄|タッチ",
    "lost detail": "细节|細節|ディテール|細部|质感|質感|纹理|線が|线条",
}
